/** The tables of requests: each request, the backfills that need them, answers about the catalogue, and claims that need a second opinion. */
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
    /** Size of the decoded body. */
    bytes: integer('bytes').notNull(),
    bodySha256: bytea('body_sha256'),
    message: text('message'),
    /** Without a series: the id of the requested coin, exchange, tag, person or platform. With one: a special kind of request (`holes` …). */
    subject: text('subject'),
    /** Only of a stored answer about candles: the spans about which it says something. `unconfirmedSlots` are empty and need a second opinion. */
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

/** The chunks of a backfill that the queue holds. Instants are in ISO 8601. */
export type StoredChunks = {
  readonly inProgress: number;
  readonly queued: number;
  readonly retrying: number;
  /** When the first retry is due. `retryTo` is when the last known one is due. */
  readonly retryFrom: string | null;
  readonly retryTo: string | null;
  /** Some of the chunks that wait for a retry, the soonest first. */
  readonly waits: readonly {
    readonly coinId: string;
    readonly from: string;
    readonly to: string;
    readonly until: string;
    readonly reason: string;
    /** Number of failed requests. */
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
    /** The coins and options as they were typed. */
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
    /** The inputs of the forecast when it last left its range. */
    finishBasis: jsonb('finish_basis'),
    /** The largest part that was ever done, from 0 to 1. */
    progress: doublePrecision('progress').notNull().default(0),
    /** The state of its chunks, as last seen by the process that runs the backfill. */
    chunks: jsonb('chunks').$type<StoredChunks>(),
    message: text('message'),
    /** `user@host`, or the name of a part of the service. */
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

/** A trigger on `ops.fetch` counts these. */
export const fetchTotals = ops.table(
  'fetch_totals',
  {
    backfillId: integer('backfill_id').notNull(),
    outcome: text('outcome').notNull(),
    /** Requests that are recorded at the same time are counted in different rows, so that none waits for the transaction of another. */
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

/** What the answers about a claim contained: numbers, texts and flags. */
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

/** The relevant facts about a tool: the arguments that it requires, and the most rows that it returns. */
export type ListedTool = {
  readonly name: string;
  readonly required: readonly string[];
  /** The maximum of its argument `limit`. Null if the tool does not state one. */
  readonly mostRows: number | null;
};

export const rpc = ops.table('rpc', {
  url: text('url').primaryKey(),
  /** Null if they were never listed. */
  tools: jsonb('tools').$type<readonly ListedTool[]>(),
  listedAt: instant('listed_at'),
  /** The address is not used until this instant. Null if it is used. */
  closedUntil: instant('closed_until'),
  /** Number of failures in a row. */
  failures: integer('failures').notNull().default(0),
  message: text('message'),
});
