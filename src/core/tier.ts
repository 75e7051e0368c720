/** The tiers of tracked series: which rule tracks a series, and how important it is when the quota is too small for all. */
import { type CandleInterval, DAY, HOUR, INTERVAL_MS, INTERVALS, type Interval } from './interval.ts';

/** Coins that the operator names, the best-ranked N coins, every active coin. */
export const TIERS = ['list', 'top', 'all'] as const;
export type Tier = (typeof TIERS)[number];

/** Higher priorities are served first. The steps leave room for priorities that an operator chooses. */
export const DEFAULT_PRIORITY: Readonly<Record<Tier, number>> = { list: 20, top: 10, all: 0 };
export const LOWEST_PRIORITY = -100;
export const HIGHEST_PRIORITY = 100;

/**
 * The greatest age of the newest data in milliseconds, unless the operator sets another. Named coins: the width of a candle, but at least an
 * hour, because a request costs the same for one candle or a hundred. `--top`: twice that below a day. All coins: a day, because one
 * request can then still return all new candles of any interval (366 × 5m are 30 hours); two days for daily candles.
 * Prices: the same as candles of the same width, or of the next smaller one; but at least one slot when a slot is longer than a day.
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
