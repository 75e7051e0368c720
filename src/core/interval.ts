/** The widths a candle can have, in the upstream's own spelling, and the grid of open times each one makes. */
import type { Instant } from '../clock.ts';

export const INTERVALS = ['5m', '15m', '30m', '1h', '6h', '12h', '24h'] as const;
export type Interval = (typeof INTERVALS)[number];

const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const INTERVAL_MS: Readonly<Record<Interval, number>> = {
  '5m': 5 * MINUTE,
  '15m': 15 * MINUTE,
  '30m': 30 * MINUTE,
  '1h': HOUR,
  '6h': 6 * HOUR,
  '12h': 12 * HOUR,
  '24h': DAY,
};

export function isInterval(text: string): text is Interval {
  return (INTERVALS as readonly string[]).includes(text);
}

/** How long after its close a candle may still be corrected; only later is an answer about it final. */
export function settleMs(interval: Interval): number {
  return INTERVAL_MS[interval];
}

/** The latest open time of the grid that is ≤ `at`. All grids are anchored at 1970-01-01T00:00:00Z, so days are UTC days. */
export function floorToGrid(at: Instant, interval: Interval): Instant {
  const width = INTERVAL_MS[interval];
  return Math.floor(at / width) * width;
}

/** The earliest open time of the grid that is ≥ `at`. */
export function ceilToGrid(at: Instant, interval: Interval): Instant {
  const width = INTERVAL_MS[interval];
  return Math.ceil(at / width) * width;
}

/** The end of the stretch whose candles had closed and settled at `asOf`: every slot that opens before it is final. */
export function settledUntil(asOf: Instant, interval: Interval): Instant {
  return floorToGrid(asOf - settleMs(interval), interval);
}
