/** The tables of tracking: the rules, the tiers that result from them, and when each tracked series was fetched. */
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, interval, smallint, text, unique } from 'drizzle-orm/pg-core';
import type { Quote } from '../../core/candle.ts';
import type { Tier } from '../../core/tier.ts';
import { ofSeries } from './candles.ts';
import { ofCoin } from './coins.ts';
import { candleInterval, identity, instant, ops } from './columns.ts';

/** A rule about which series are kept fresh. */
export const track = ops.table(
  'track',
  {
    id: identity('id').primaryKey(),
    tier: text('tier').$type<Tier>().notNull(),
    coinId: ofCoin(),
    top: integer('top'),
    interval: candleInterval('interval').notNull(),
    quote: text('quote').$type<Quote>().notNull(),
    /** The rule wants no data from before this instant. */
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

/** A group of tracked series that are treated alike. */
export const tier = ops.table(
  'tier',
  {
    id: identity('id').primaryKey(),
    tier: text('tier').$type<Tier>().notNull(),
    priority: smallint('priority').notNull(),
    interval: candleInterval('interval').notNull(),
    targetAge: interval('target_age').notNull(),
    achievableAge: interval('achievable_age'),
    /** Time from a refresh of a series to the next one. It is shorter than the achievable age, which includes the wait for a tick. */
    refreshAfter: interval('refresh_after'),
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
    seriesId: ofSeries().primaryKey(),
    tierId: integer('tier_id')
      .notNull()
      .references(() => tier.id),
    trackedAt: instant('tracked_at').notNull(),
    askedAt: instant('asked_at'),
    refreshAt: instant('refresh_at'),
    seenUntil: instant('seen_until'),
    endsAt: instant('ends_at'),
    queuedAt: instant('queued_at'),
  },
  (t) => [
    index('tracked_by_age').on(t.tierId, t.askedAt),
    index('tracked_by_refresh').on(t.tierId, t.refreshAt),
    index('tracked_ending').on(t.endsAt).where(sql`ends_at is not null`),
    index('tracked_queued').on(t.queuedAt).where(sql`queued_at is not null`),
  ],
);
