/** The tables of requests: each one sent, the backfills that want them, how upstream answered about the catalogue, and what needs a second opinion. */
import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { Quote } from '../../core/candle.ts';
import { ofSeries } from './candles.ts';
import {
  bigIdentity,
  bigNumber,
  bytea,
  candleInterval,
  identity,
  instant,
  jsonb,
  ops,
  tstzmultirange,
  tstzrange,
} from './columns.ts';

export const fetch = ops.table(
  'fetch',
  {
    id: bigIdentity('id').primaryKey(),
    sentAt: instant('sent_at').notNull(),
    /** No fact in the answer is newer than this. */
    asOf: instant('as_of').notNull(),
    accountId: text('account_id').notNull(),
    /** What was requested: `ohlcv`, `coins` … */
    endpoint: text('endpoint').notNull(),
    seriesId: integer('series_id'),
    span: tstzrange('span'),
    backfillId: integer('backfill_id'),
    /** 1 for the first try. */
    attempt: smallint('attempt').notNull(),
    /** Null when no status line arrived. */
    status: smallint('status'),
    outcome: text('outcome').notNull(),
    durationMs: integer('duration_ms').notNull(),
    rows: integer('rows').notNull(),
    stored: integer('stored').notNull(),
    revised: integer('revised').notNull(),
    quarantined: integer('quarantined').notNull(),
    /** Of the decoded body. */
    bytes: integer('bytes').notNull(),
    bodySha256: bytea('body_sha256'),
    message: text('message'),
    /** The id of the coin, exchange, tag, person or platform that it was about, where there is no series. */
    subject: text('subject'),
    /** Of a stored answer about candles: the spans of which it told something, and the empty slots that need a second opinion. */
    answeredSlots: tstzmultirange('answered_slots'),
    unconfirmedSlots: tstzmultirange('unconfirmed_slots'),
  },
  (t) => [
    index('fetch_unconfirmed').on(t.seriesId).where(sql`unconfirmed_slots is not null`),
    index('fetch_by_time').using('brin', t.sentAt).with({ autosummarize: 'on' }),
    index('fetch_of_series').on(t.seriesId, t.asOf).where(sql`series_id is not null`),
    index('fetch_of_endpoint').on(t.endpoint, t.accountId, t.sentAt).where(sql`series_id is null`),
  ],
);

export type BackfillState =
  | 'queued'
  | 'running'
  | 'paused'
  | 'done'
  | 'stopped'
  | 'interrupted'
  | 'failed'
  | 'cancelled';

/** The chunks of a backfill that the queue holds; instants in ISO 8601. */
export type StoredChunks = {
  readonly inProgress: number;
  readonly queued: number;
  readonly retrying: number;
  /** When the first of them is retried, and when the last one that is known. */
  readonly retryFrom: string | null;
  readonly retryTo: string | null;
  /** Some of those that wait for a retry, the soonest first. */
  readonly waits: readonly {
    readonly coinId: string;
    readonly from: string;
    readonly to: string;
    readonly until: string;
    readonly reason: string;
    /** Requests that failed. */
    readonly attempts: number;
  }[];
};

export const backfill = ops.table(
  'backfill',
  {
    id: identity('id').primaryKey(),
    requestedAt: instant('requested_at').notNull(),
    startedAt: instant('started_at'),
    finishedAt: instant('finished_at'),
    state: text('state').$type<BackfillState>().notNull(),
    /** What was typed. */
    spec: jsonb('spec').notNull(),
    span: tstzrange('span').notNull(),
    interval: candleInterval('interval').notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    plannedRequests: integer('planned_requests').notNull(),
    /** `host:pid`. */
    owner: text('owner'),
    heartbeatAt: instant('heartbeat_at'),
    isDetached: boolean('is_detached').notNull().default(false),
    priority: smallint('priority').notNull().default(0),
    coinIds: text('coin_ids').array().$type<readonly string[]>(),
    leftRequests: integer('left_requests'),
    waitUntil: instant('wait_until'),
    finishAt: instant('finish_at'),
    /** The range of `finishAt`. */
    finishFrom: instant('finish_from'),
    finishTo: instant('finish_to'),
    /** Why the forecast last left its range, and when. */
    finishChange: text('finish_change'),
    finishChangedAt: instant('finish_changed_at'),
    /** What the forecast was made from when it last left its range. */
    finishBasis: jsonb('finish_basis'),
    /** The part that is done, from 0 to 1: the most that was ever done. */
    progress: doublePrecision('progress').notNull().default(0),
    /** Where its chunks are, as the process that runs it saw them last. */
    chunks: jsonb('chunks').$type<StoredChunks>(),
    message: text('message'),
    /** `user@host`, or which part of the service. */
    requestedBy: text('requested_by'),
  },
  (t) => [
    index('backfill_to_do').on(t.priority, t.id).where(sql`is_detached and state in ('queued', 'running')`),
    check(
      'backfill_state',
      sql`state in ('queued', 'running', 'paused', 'done', 'stopped', 'interrupted', 'failed', 'cancelled')`,
    ),
    check(
      'backfill_owned',
      sql`state <> 'running' or (owner is not null and heartbeat_at is not null and started_at is not null)`,
    ),
    check('backfill_detached', sql`not is_detached or coin_ids is not null`),
  ],
);

/** Counted by a trigger on `ops.fetch`. */
export const fetchTotals = ops.table(
  'fetch_totals',
  {
    backfillId: integer('backfill_id').notNull(),
    outcome: text('outcome').notNull(),
    /** Requests that are recorded at the same time are counted in several rows: none waits for another one's transaction. */
    part: smallint('part').notNull().default(0),
    requests: bigNumber('requests').notNull(),
    rows: bigNumber('rows').notNull(),
    stored: bigNumber('stored').notNull(),
    revised: bigNumber('revised').notNull(),
    quarantined: bigNumber('quarantined').notNull(),
  },
  (t) => [primaryKey({ columns: [t.backfillId, t.outcome, t.part] })],
);

export const catalogueItem = ops.table(
  'catalogue_item',
  {
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    askedAt: instant('asked_at').notNull(),
    answeredAt: instant('answered_at'),
    outcome: text('outcome').notNull(),
    times: integer('times').notNull(),
    waitUntil: instant('wait_until'),
    rows: integer('rows').notNull().default(0),
    isTruncated: boolean('is_truncated').notNull().default(false),
    message: text('message'),
  },
  (t) => [primaryKey({ columns: [t.kind, t.id] }), index('catalogue_item_by_age').on(t.kind, t.askedAt)],
);

/** What the answers about a claim said: numbers, texts and flags. */
export type Evidence = Readonly<Record<string, number | string | boolean | null>>;

export const secondOpinion = ops.table(
  'second_opinion',
  {
    claim: text('claim').notNull(),
    key: text('key'),
    seriesId: ofSeries(),
    span: tstzrange('span'),
    evidence: jsonb('evidence').$type<Evidence>(),
    answers: integer('answers').notNull().default(1),
    requestedAt: instant('requested_at').notNull(),
    retryAt: instant('retry_at').notNull(),
  },
  (t) => [
    uniqueIndex('second_opinion_of_series').on(t.seriesId, t.span).where(sql`series_id is not null`),
    uniqueIndex('second_opinion_of_key').on(t.claim, t.key).where(sql`key is not null`),
    check(
      'second_opinion_subject',
      sql`(series_id is null) = (span is null) and (series_id is null) = (key is not null)`,
    ),
    check(
      'second_opinion_claim',
      sql`series_id is null or claim in ('provisional', 'unconfirmed', 'malformed', 'implausible')`,
    ),
    check('second_opinion_span', sql`not isempty(span)`),
  ],
);

/** What matters of a tool: which arguments it requires, and how many rows it gives at most. */
export type ListedTool = {
  readonly name: string;
  readonly required: readonly string[];
  /** The maximum of its argument `limit`; null where it does not say. */
  readonly mostRows: number | null;
};

export const rpc = ops.table('rpc', {
  url: text('url').primaryKey(),
  /** Null: they were never listed. */
  tools: jsonb('tools').$type<readonly ListedTool[]>(),
  listedAt: instant('listed_at'),
  /** Not used until then; null: it is used. */
  closedUntil: instant('closed_until'),
  /** In a row. */
  failures: integer('failures').notNull().default(0),
  message: text('message'),
});
