/**
 * The tables of candles, except `market.candle` itself: it is partitioned, which drizzle cannot express, and only hand-written SQL
 * uses it.
 */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  foreignKey,
  index,
  integer,
  interval,
  primaryKey,
  smallint,
  text,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { Quote } from '../../core/candle.ts';
import { ofCoin } from './coins.ts';
import {
  bigIdentity,
  bigNumber,
  bytea,
  candleInterval,
  identity,
  instant,
  jsonb,
  market,
  prices,
  tstzmultirange,
  tstzrange,
} from './columns.ts';

export const series = market.table(
  'series',
  {
    id: identity('id').primaryKey(),
    coinId: ofCoin().notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    interval: candleInterval('interval').notNull(),
    wanted: tstzmultirange('wanted').notNull().default(sql`'{}'`),
    covered: tstzmultirange('covered').notNull().default(sql`'{}'`),
    coveredCandles: bigNumber('covered_candles').notNull().default(0),
    priority: smallint('priority').notNull().default(0),
    createdAt: instant('created_at').notNull().default(sql`now()`),
    version: bigNumber('version').notNull().default(0),
    answeredAt: instant('answered_at'),
    candles: bigNumber('candles').notNull().default(0),
    digest: bigint('digest', { mode: 'bigint' }).notNull().default(sql`0`),
    emptyOnce: tstzmultirange('empty_once').notNull().default(sql`'{}'`),
    steps: integer('steps').notNull().default(0),
    link: bytea('link'),
  },
  (t) => [
    unique('series_of_coin').on(t.coinId, t.quote, t.interval),
    check('series_quote', sql`quote in ('usd', 'btc')`),
  ],
);

/** A column `series_id` that references a series. */
export const ofSeries = () => integer('series_id').references(() => series.id);

/** A column `series_id` of a row that is deleted together with its series. */
const withSeries = () => integer('series_id').references(() => series.id, { onDelete: 'cascade' });

export const price = market.table(
  'price',
  {
    time: instant('time').notNull(),
    price: doublePrecision('price'),
    volume24h: doublePrecision('volume_24h'),
    marketCap: doublePrecision('market_cap'),
    seriesId: integer('series_id').notNull(),
  },
  (t) => [primaryKey({ name: 'price_pkey', columns: [t.seriesId, t.time] })],
);

export const openCandle = market.table(
  'open_candle',
  {
    seriesId: integer('series_id').notNull(),
    openTime: instant('open_time').notNull(),
    closeTime: instant('close_time').notNull(),
  },
  (t) => [
    primaryKey({ name: 'open_candle_pkey', columns: [t.seriesId, t.openTime] }),
    foreignKey({ name: 'open_candle_series_id_fkey', columns: [t.seriesId], foreignColumns: [series.id] }).onDelete(
      'cascade',
    ),
  ],
);

export type EvidenceKind = 'answer' | 'mended' | 'retention' | 'renamed' | 'adopted';

export const evidence = market.table(
  'evidence',
  {
    seriesId: withSeries().notNull(),
    number: integer('number').notNull(),
    kind: text('kind').$type<EvidenceKind>().notNull(),
    slots: tstzmultirange('slots').notNull(),
    knownAt: instant('known_at').notNull(),
    asOf: instant('as_of').notNull(),
    candles: integer('candles').notNull(),
    digest: bigint('digest', { mode: 'bigint' }).notNull(),
    locator: bigint('locator', { mode: 'bigint' }).notNull(),
    link: bytea('link').notNull(),
    stepSeconds: integer('step_seconds').array(),
    stepSlots: smallint('step_slots').array(),
    fetchId: bigNumber('fetch_id'),
    bodySha256: bytea('body_sha256'),
    detail: text('detail'),
  },
  (t) => [
    primaryKey({ columns: [t.seriesId, t.number] }),
    check('evidence_kind', sql`kind in ('answer', 'mended', 'retention', 'renamed', 'adopted')`),
  ],
);

export type RevisionReason = 'late answer' | 'removed by upstream' | 'mended' | 'contradicted';

export const revision = market.table(
  'revision',
  {
    id: bigIdentity('id').primaryKey(),
    seriesId: integer('series_id').notNull(),
    openTime: instant('open_time').notNull(),
    seenAt: instant('seen_at').notNull(),
    fetchId: bigNumber('fetch_id'),
    ...prices(),
    step: integer('step'),
    reason: text('reason').$type<RevisionReason>().notNull().default('late answer'),
    knownAt: instant('known_at'),
    wasEmpty: boolean('was_empty').notNull().default(false),
  },
  (t) => [
    index('revision_of_candle').on(t.seriesId, t.openTime),
    index('revision_of_fetch').on(t.fetchId),
    check('revision_reason', sql`reason in ('late answer', 'removed by upstream', 'mended', 'contradicted')`),
  ],
);

export const quarantine = market.table(
  'quarantine',
  {
    id: bigIdentity('id').primaryKey(),
    seriesId: integer('series_id'),
    openTime: instant('open_time'),
    reason: text('reason').notNull(),
    row: jsonb('row').notNull(),
    fetchId: bigNumber('fetch_id'),
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

export type RefusalReason = 'history limit' | 'interval' | 'unknown coin' | 'forbidden' | 'bad request';

export const refusal = market.table(
  'refusal',
  {
    id: bigIdentity('id').primaryKey(),
    accountPlan: text('account_plan').notNull(),
    seriesId: ofSeries(),
    interval: candleInterval('interval'),
    span: tstzrange('span'),
    depth: interval('depth'),
    reason: text('reason').$type<RefusalReason>().notNull(),
    message: text('message').notNull(),
    refusedAt: instant('refused_at').notNull(),
    fetchId: bigNumber('fetch_id'),
  },
  (t) => [
    check('refusal_reason', sql`reason in ('history limit', 'interval', 'unknown coin', 'forbidden', 'bad request')`),
    check(
      'refusal_subject',
      sql`case when series_id is null then interval is not null and span is null else span is not null and depth is null end`,
    ),
    uniqueIndex('refusal_history_limit').on(t.accountPlan, t.interval).where(sql`series_id is null`),
    uniqueIndex('refusal_of_series').on(t.seriesId, t.accountPlan, t.span).where(sql`series_id is not null`),
  ],
);

export const rollup = market.table(
  'rollup',
  {
    seriesId: withSeries().notNull(),
    interval: candleInterval('interval').notNull(),
    openTime: instant('open_time').notNull(),
    ...prices(),
  },
  (t) => [primaryKey({ columns: [t.seriesId, t.interval, t.openTime] })],
);

export const rollupCoverage = market.table(
  'rollup_coverage',
  {
    seriesId: withSeries().notNull(),
    interval: candleInterval('interval').notNull(),
    spans: tstzmultirange('spans').notNull(),
  },
  (t) => [primaryKey({ columns: [t.seriesId, t.interval] })],
);

export type Period = 'week' | 'month';

export const calendarCandle = market.table(
  'calendar_candle',
  {
    coinId: ofCoin().notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    period: text('period').$type<Period>().notNull(),
    openTime: instant('open_time').notNull(),
    ...prices(),
    slots: integer('slots').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.coinId, t.quote, t.period, t.openTime] }),
    check('calendar_candle_period', sql`period in ('week', 'month')`),
  ],
);

export const calendarCoverage = market.table(
  'calendar_coverage',
  {
    coinId: ofCoin().notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    period: text('period').$type<Period>().notNull(),
    spans: tstzmultirange('spans').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.coinId, t.quote, t.period] }),
    check('calendar_coverage_period', sql`period in ('week', 'month')`),
  ],
);

/** Candles that were imported from other sources. They are never mixed with answers of upstream. */
export const importedSeries = market.table(
  'imported_series',
  {
    id: identity('id').primaryKey(),
    source: text('source').notNull(),
    coinId: ofCoin().notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    interval: candleInterval('interval').notNull(),
    importedAt: instant('imported_at').notNull(),
    candles: bigNumber('candles').notNull().default(0),
    firstOpenTime: instant('first_open_time'),
    lastOpenTime: instant('last_open_time'),
    digest: bigint('digest', { mode: 'bigint' }).notNull().default(sql`0`),
  },
  (t) => [
    unique('imported_series_of_coin').on(t.source, t.coinId, t.quote, t.interval),
    check('imported_series_source', sql`source ~ '^[A-Za-z0-9._-]{1,63}$' and lower(source) <> 'upstream'`),
    check('imported_series_quote', sql`quote in ('usd', 'btc')`),
    check('imported_series_interval', sql`interval <= '24h'`),
  ],
);

export const importedCandle = market.table(
  'imported_candle',
  {
    openTime: instant('open_time').notNull(),
    ...prices(),
    seriesId: integer('series_id').notNull(),
    isFinal: boolean('is_final').notNull(),
  },
  (t) => [primaryKey({ name: 'imported_candle_pkey', columns: [t.seriesId, t.openTime] })],
);
