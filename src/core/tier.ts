/** The tiers of tracked series: which rule tracks a series, and how important it is when the quota is too small for all. */
import { type CandleInterval, DAY, HOUR, INTERVAL_MS, INTERVALS, type Interval } from './interval.ts';

/** Coins named one by one, the best-ranked N, every active coin. */
export const TIERS = ['list', 'top', 'all'] as const;
export type Tier = (typeof TIERS)[number];

/** Higher is served first. Between them is room for priorities that an operator chooses. */
export const DEFAULT_PRIORITY: Readonly<Record<Tier, number>> = { list: 20, top: 10, all: 0 };
export const LOWEST_PRIORITY = -100;
export const HIGHEST_PRIORITY = 100;

/**
 * How old the newest data may become, unless the operator says otherwise. Named coins: the width of a candle, but at least an hour, since
 * a request costs the same whether it brings one candle or a hundred. `--top`: twice that below a day. All coins: a day, because one
 * request then still holds all new candles of any interval (366 × 5m are 30 hours); two days for daily candles.
 * Prices: as candles of the same width, or of the next smaller one; but never before a new slot has begun.
 */
export function defaultTargetAgeMs(tier: Tier, interval: Interval): number {
  const width = INTERVAL_MS[interval];
  const like = INTERVALS.findLast((one) => INTERVAL_MS[one] <= width)!;
  return Math.max(TARGET_AGES[tier][like], width > DAY ? width : 0);
}

const TARGET_AGES: Readonly<Record<Tier, Readonly<Record<CandleInterval, number>>>> = {
  list: { '5m': HOUR, '15m': HOUR, '30m': HOUR, '1h': HOUR, '6h': 6 * HOUR, '12h': 12 * HOUR, '24h': DAY },
  top: {
    '5m': 2 * HOUR,
    '15m': 2 * HOUR,
    '30m': 2 * HOUR,
    '1h': 2 * HOUR,
    '6h': 12 * HOUR,
    '12h': DAY,
    '24h': DAY,
  },
  all: { '5m': DAY, '15m': DAY, '30m': DAY, '1h': DAY, '6h': DAY, '12h': DAY, '24h': 2 * DAY },
};
