/**
 * The tables as drizzle sees them; those of snapshots are in `snapshot-schema.ts`, of what is made of candles in `rollup-schema.ts`, of the catalogue in `catalogue-schema.ts`, of accounts in `account-schema.ts`, of the service in `service-schema.ts`. `market.candle` is not here: it is partitioned, which drizzle cannot say, and only
 * ever touched by hand-written SQL (`migrations/`, `candle.ts`). Views are plain SQL in `migrations/` too.
 */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  interval,
  jsonb,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { INTERVALS } from '../core/interval.ts';

export const market = pgSchema('market');
export const ops = pgSchema('ops');

export const candleInterval = market.enum('candle_interval', INTERVALS);

/** As Postgres writes them; `multirange.ts` turns them into spans and back. */
const tstzrange = customType<{ data: string }>({ dataType: () => 'tstzrange' });
export const tstzmultirange = customType<{ data: string }>({ dataType: () => 'tstzmultirange' });
const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
const identity = (name: string) => bigint(name, { mode: 'number' }).generatedAlwaysAsIdentity();

export const coin = market.table(
  'coin',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    symbol: text('symbol').notNull(),
    rank: integer('rank').notNull(),
    type: text('type'),
    isNew: boolean('is_new').notNull(),
    isActive: boolean('is_active').notNull(),
    firstDataAt: instant('first_data_at'),
    firstSeenAt: instant('first_seen_at').notNull(),
    lastSeenAt: instant('last_seen_at').notNull(),
    rankSeenAt: instant('rank_seen_at').notNull(),
    position: integer('position'),
    answer: text('answer'),
  },
  (t) => [index('coin_by_rank').on(t.rank).where(sql`is_active and rank > 0`), index('coin_by_symbol').on(t.symbol)],
);

export const coinChange = market.table(
  'coin_change',
  {
    coinId: text('coin_id')
      .notNull()
      .references(() => coin.id),
    seenAt: instant('seen_at').notNull(),
    field: text('field').notNull(),
    oldValue: text('old_value').notNull(),
    newValue: text('new_value').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.coinId, t.seenAt, t.field] }),
    check('coin_change_field', sql`field in ('name', 'symbol', 'is_active')`),
  ],
);

export const series = market.table(
  'series',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    coinId: text('coin_id')
      .notNull()
      .references(() => coin.id),
    quote: text('quote').notNull(),
    interval: candleInterval('interval').notNull(),
    wanted: tstzmultirange('wanted').notNull().default('{}'),
    covered: tstzmultirange('covered').notNull().default('{}'),
    coveredCandles: bigint('covered_candles', { mode: 'number' }).notNull().default(0),
    priority: smallint('priority').notNull().default(0),
    createdAt: instant('created_at').notNull().default(sql`now()`),
    version: bigint('version', { mode: 'number' }).notNull().default(0),
    answeredAt: instant('answered_at'),
  },
  (t) => [
    unique('series_of_coin').on(t.coinId, t.quote, t.interval),
    check('series_quote', sql`quote in ('usd', 'btc')`),
  ],
);

export const openCandle = market.table(
  'open_candle',
  {
    seriesId: integer('series_id')
      .notNull()
      .references(() => series.id, { onDelete: 'cascade' }),
    openTime: instant('open_time').notNull(),
    closeTime: instant('close_time').notNull(),
  },
  (t) => [primaryKey({ columns: [t.seriesId, t.openTime] })],
);

/** Counted by triggers. */
export const version = ops.table('version', {
  topic: text('topic').primaryKey(),
  version: bigint('version', { mode: 'number' }).notNull(),
});

export const revision = market.table(
  'revision',
  {
    id: identity('id').primaryKey(),
    seriesId: integer('series_id').notNull(),
    openTime: instant('open_time').notNull(),
    seenAt: instant('seen_at').notNull(),
    fetchId: bigint('fetch_id', { mode: 'number' }),
    open: doublePrecision('open'),
    high: doublePrecision('high'),
    low: doublePrecision('low'),
    close: doublePrecision('close'),
    volume: doublePrecision('volume'),
    marketCap: doublePrecision('market_cap'),
  },
  (t) => [index('revision_of_candle').on(t.seriesId, t.openTime), index('revision_of_fetch').on(t.fetchId)],
);

export const pending = market.table(
  'pending',
  {
    seriesId: integer('series_id')
      .notNull()
      .references(() => series.id),
    span: tstzrange('span').notNull(),
    reason: text('reason').notNull(),
    answers: integer('answers').notNull().default(1),
    askedAt: instant('asked_at').notNull(),
    dueAt: instant('due_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.seriesId, t.span] }),
    check('pending_reason', sql`reason in ('provisional', 'unconfirmed', 'malformed')`),
    check('pending_span', sql`not isempty(span)`),
  ],
);

export const quarantine = market.table(
  'quarantine',
  {
    id: identity('id').primaryKey(),
    seriesId: integer('series_id'),
    openTime: instant('open_time'),
    reason: text('reason').notNull(),
    row: jsonb('row').notNull(),
    fetchId: bigint('fetch_id', { mode: 'number' }),
    seenAt: instant('seen_at').notNull(),
    endpoint: text('endpoint'),
    recordId: text('record_id'),
    times: integer('times').notNull().default(1),
  },
  (t) => [
    index('quarantine_of_series').on(t.seriesId, t.openTime),
    uniqueIndex('quarantine_of_record').on(t.endpoint, t.recordId, t.reason).where(sql`endpoint is not null`),
    index('quarantine_of_fetch').on(t.fetchId),
    check('quarantine_subject', sql`(series_id is null) = (endpoint is not null and record_id is not null)`),
  ],
);

export const refusal = market.table(
  'refusal',
  {
    id: identity('id').primaryKey(),
    accountPlan: text('account_plan').notNull(),
    seriesId: integer('series_id').references(() => series.id),
    interval: candleInterval('interval'),
    span: tstzrange('span'),
    depth: interval('depth'),
    reason: text('reason').notNull(),
    message: text('message').notNull(),
    refusedAt: instant('refused_at').notNull(),
    fetchId: bigint('fetch_id', { mode: 'number' }),
  },
  (t) => [
    check('refusal_reason', sql`reason in ('plan wall', 'interval', 'unknown coin', 'forbidden', 'bad request')`),
    check(
      'refusal_subject',
      sql`case when series_id is null then interval is not null and span is null else span is not null and depth is null end`,
    ),
    uniqueIndex('refusal_wall').on(t.accountPlan, t.interval).where(sql`series_id is null`),
    uniqueIndex('refusal_of_series').on(t.seriesId, t.accountPlan, t.span).where(sql`series_id is not null`),
  ],
);

/** A documented wall that upstream answered beyond: it does not stand, for this plan. */
export const openWall = ops.table(
  'open_wall',
  {
    accountPlan: text('account_plan').notNull(),
    interval: candleInterval('interval').notNull(),
    provenAt: instant('proven_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountPlan, t.interval] })],
);

/** At most one row: whose data this warehouse holds. */
export const origin = ops.table(
  'origin',
  {
    isOnly: boolean('is_only').primaryKey().default(true),
    simulator: text('simulator'),
    since: instant('since').notNull().default(sql`now()`),
  },
  () => [check('origin_is_only', sql`is_only`)],
);

export const fetch = ops.table(
  'fetch',
  {
    id: identity('id').primaryKey(),
    sentAt: instant('sent_at').notNull(),
    asOf: instant('as_of').notNull(),
    accountId: text('account_id').notNull(),
    endpoint: text('endpoint').notNull(),
    seriesId: integer('series_id'),
    span: tstzrange('span'),
    backfillId: integer('backfill_id'),
    attempt: smallint('attempt').notNull(),
    status: smallint('status'),
    outcome: text('outcome').notNull(),
    durationMs: integer('duration_ms').notNull(),
    rows: integer('rows').notNull(),
    stored: integer('stored').notNull(),
    revised: integer('revised').notNull(),
    setAside: integer('set_aside').notNull(),
    bytes: integer('bytes').notNull(),
    bodySha256: bytea('body_sha256'),
    message: text('message'),
    subject: text('subject'),
    told: tstzmultirange('told'),
    doubted: tstzmultirange('doubted'),
  },
  (t) => [
    index('fetch_doubts').on(t.seriesId).where(sql`doubted is not null`),
    index('fetch_by_time').using('brin', t.sentAt).with({ autosummarize: true }),
    index('fetch_of_series').on(t.seriesId, t.asOf).where(sql`series_id is not null`),
    index('fetch_of_endpoint').on(t.endpoint, t.accountId, t.sentAt).where(sql`series_id is null`),
    index('fetch_of_backfill').on(t.backfillId).where(sql`backfill_id is not null`),
  ],
);

export const backfill = ops.table(
  'backfill',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    requestedAt: instant('requested_at').notNull(),
    startedAt: instant('started_at'),
    finishedAt: instant('finished_at'),
    state: text('state').notNull(),
    spec: jsonb('spec').notNull(),
    span: tstzrange('span').notNull(),
    interval: candleInterval('interval').notNull(),
    quote: text('quote').notNull(),
    plannedRequests: integer('planned_requests').notNull(),
    owner: text('owner'),
    heartbeatAt: instant('heartbeat_at'),
    isDetached: boolean('is_detached').notNull().default(false),
    priority: smallint('priority').notNull().default(0),
    coinIds: text('coin_ids').array(),
    leftRequests: integer('left_requests'),
    waitUntil: instant('wait_until'),
    finishAt: instant('finish_at'),
    message: text('message'),
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

/** A rule of what is to be kept fresh. */
export const track = ops.table(
  'track',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    tier: text('tier').notNull(),
    coinId: text('coin_id').references(() => coin.id),
    top: integer('top'),
    interval: candleInterval('interval').notNull(),
    quote: text('quote').notNull(),
    since: instant('since').notNull(),
    priority: smallint('priority').notNull(),
    targetAge: interval('target_age').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (t) => [
    unique('track_rule').on(t.tier, t.coinId, t.top, t.interval, t.quote).nullsNotDistinct(),
    check(
      'track_tier',
      sql`case tier when 'list' then coin_id is not null and top is null when 'top' then coin_id is null and coalesce(top, 0) > 0 when 'all' then coin_id is null and top is null else false end`,
    ),
    check('track_quote', sql`quote in ('usd', 'btc')`),
    check('track_target_age', sql`target_age > interval '0'`),
  ],
);

/** Tracked series that are treated alike. */
export const tier = ops.table(
  'tier',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    tier: text('tier').notNull(),
    priority: smallint('priority').notNull(),
    interval: candleInterval('interval').notNull(),
    targetAge: interval('target_age').notNull(),
    achievableAge: interval('achievable_age'),
    keepsUp: boolean('keeps_up').notNull().default(true),
    plannedAt: instant('planned_at'),
  },
  (t) => [
    unique('tier_kind').on(t.tier, t.priority, t.interval, t.targetAge),
    check('tier_tier', sql`tier in ('list', 'top', 'all')`),
  ],
);

export const tracked = ops.table(
  'tracked',
  {
    seriesId: integer('series_id')
      .primaryKey()
      .references(() => series.id),
    tierId: integer('tier_id')
      .notNull()
      .references(() => tier.id),
    trackedAt: instant('tracked_at').notNull(),
    askedAt: instant('asked_at'),
    turnAt: instant('turn_at'),
    seenUntil: instant('seen_until'),
    endsAt: instant('ends_at'),
    queuedAt: instant('queued_at'),
  },
  (t) => [
    index('tracked_by_age').on(t.tierId, t.askedAt),
    index('tracked_by_turn').on(t.tierId, t.turnAt),
    index('tracked_ending').on(t.endsAt).where(sql`ends_at is not null`),
    index('tracked_queued').on(t.queuedAt).where(sql`queued_at is not null`),
  ],
);

export const coinRename = market.table(
  'coin_rename',
  {
    oldId: text('old_id').primaryKey(),
    newId: text('new_id').notNull(),
    renamedAt: instant('renamed_at').notNull(),
    source: text('source').notNull(),
    currencyId: text('currency_id'),
    seenAt: instant('seen_at'),
  },
  () => [
    check('coin_rename_ids', sql`old_id <> new_id`),
    check('coin_rename_source', sql`source in ('coins', 'changelog')`),
  ],
);
