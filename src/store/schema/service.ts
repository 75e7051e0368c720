/** The tables of running services: runs of schedules, running processes, notices to the operator, and records of changes. */
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, smallint, text, unique, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import type { NoticeEvent } from '../../core/settings/notice-settings.ts';
import { bigIdentity, bigNumber, instant, jsonb, ops } from './columns.ts';

export type RunState = 'running' | 'waiting' | 'held' | 'done' | 'failed' | 'superseded';

export const scheduleRun = ops.table(
  'schedule_run',
  {
    id: bigIdentity('id').primaryKey(),
    schedule: text('schedule').notNull(),
    tick: instant('tick').notNull(),
    state: text('state').$type<RunState>().notNull(),
    /** How often the run was begun. Attempts that the quota held do not count. */
    attempts: smallint('attempts').notNull(),
    /** Number of failed runs in a row, up to this one. */
    failures: integer('failures').notNull(),
    owner: text('owner').notNull(),
    begunAt: instant('begun_at').notNull(),
    endedAt: instant('ended_at'),
    leaseUntil: instant('lease_until'),
    waitUntil: instant('wait_until'),
    message: text('message'),
  },
  (t) => [
    unique('schedule_run_of_tick').on(t.schedule, t.tick),
    index('schedule_run_latest').on(t.schedule, t.id),
    index('schedule_run_failures').on(t.schedule, t.id).where(sql`state = 'failed'`),
    check('schedule_run_state', sql`state in ('running', 'waiting', 'held', 'done', 'failed', 'superseded')`),
  ],
);

export const instance = ops.table('instance', {
  /** `host:pid`. */
  owner: text('owner').primaryKey(),
  roles: text('roles').array().$type<readonly string[]>().notNull(),
  startedAt: instant('started_at').notNull(),
  heartbeatAt: instant('heartbeat_at').notNull(),
  /** The account with which the process sends requests. Null if it only serves. */
  accountId: text('account_id'),
  /** The schedules of its scheduler, with their cron expressions. Null if the process has no scheduler. */
  schedules: jsonb('schedules').$type<Readonly<Record<string, string>>>(),
});

export const notice = ops.table(
  'notice',
  {
    id: bigIdentity('id').primaryKey(),
    event: text('event').$type<NoticeEvent>().notNull(),
    /** The exact subject of the notice. */
    topic: text('topic').notNull(),
    text: text('text').notNull(),
    raisedAt: instant('raised_at').notNull(),
    /** When the reported state began. Null if the notice reports an event, which has no end. */
    beganAt: instant('began_at'),
    /** When that state ended. Null while it lasts. */
    endedAt: instant('ended_at'),
    /** Only of a notice about quarantine: the id of the last row that it reports. */
    upto: bigNumber('upto'),
    attempts: smallint('attempts').notNull().default(0),
    dueAt: instant('due_at'),
    sentAt: instant('sent_at'),
    owner: text('owner'),
    message: text('message'),
  },
  (t) => [
    index('notice_of_topic').on(t.topic, t.raisedAt),
    index('notice_to_send').on(t.id).where(sql`due_at is not null`),
    uniqueIndex('notice_of_state').on(t.topic).where(sql`began_at is not null and ended_at is null`),
  ],
);

export const watch = ops.table('watch', {
  name: text('name').primaryKey(),
  since: instant('since'),
  seenAt: instant('seen_at').notNull(),
});

export const audit = ops.table(
  'audit',
  {
    id: bigIdentity('id').primaryKey(),
    at: instant('at').notNull(),
    actor: text('actor').notNull(),
    command: text('command').notNull(),
    endedAt: instant('ended_at'),
    message: text('message'),
    settings: jsonb('settings').$type<Readonly<Record<string, string>>>(),
  },
  (t) => [index('audit_at').on(t.at), index('audit_starts').on(t.id).where(sql`settings is not null`)],
);

export const counted = ops.table('counted', {
  /** What was counted. */
  name: text('name').primaryKey(),
  countedAt: instant('counted_at').notNull(),
  tookMs: integer('took_ms').notNull(),
  answer: jsonb('answer').notNull(),
});

/** At most one row: the lake that this warehouse keeps up to date. */
export const lake = ops.table(
  'lake',
  {
    isOnly: boolean('is_only').primaryKey().default(true),
    /** The id of the lake, as in its manifest. */
    id: uuid('id').notNull(),
    /** Where a run last completed the manifest, or is about to complete it. */
    place: text('place').notNull(),
    /** Instant of the manifest that was completed last. Null if there is none yet, so that none can be missing. */
    at: instant('at'),
    /** Instant of the manifest that a run was about to complete. */
    nextAt: instant('next_at'),
  },
  () => [check('lake_is_only', sql`is_only`)],
);

/** Rows that transactions lock (`store/connection/lock.ts`). */
export const lock = ops.table('lock', { name: text('name').primaryKey() });

/** Triggers raise these versions. */
export const version = ops.table('version', {
  topic: text('topic').primaryKey(),
  version: bigNumber('version').notNull(),
});
