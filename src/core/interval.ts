/**
 * The intervals of series, and the grid of slots of each interval. For candles, the interval is the width as the upstream spells it. For a price
 * series it is `prices-` and the width. So coin, quote and interval together name one series, of candles or of prices.
 */
import type { Instant } from '../clock.ts';
import type { Quote } from './candle.ts';
import type { Span } from './span.ts';

/** Intervals of candles. Source: upstream-api.md, 1.1. */
export const INTERVALS = ['5m', '15m', '30m', '1h', '6h', '12h', '24h'] as const;
export type CandleInterval = (typeof INTERVALS)[number];

/** Widths of the slots of a price series. The upstream's 24h and 1d are the same width. Source: upstream-api.md, 1.7. */
export const PRICE_WIDTHS = [
  ...['5m', '10m', '15m', '30m', '45m', '1h', '2h', '3h', '6h', '12h'],
  ...['1d', '7d', '14d', '30d', '90d', '365d'],
] as const;

export type PriceWidth = (typeof PRICE_WIDTHS)[number];
export type PriceInterval = `prices-${PriceWidth}`;
export const PRICE_INTERVALS: readonly PriceInterval[] = PRICE_WIDTHS.map((width) => priceInterval(width));

export type Interval = CandleInterval | PriceInterval;

/** Names one series. */
export type SeriesName = { readonly coinId: string; readonly quote: Quote; readonly interval: Interval };

/** `btc-bitcoin usd 24h`: the name that attestations use. */
export function nameOfSeries({ coinId, quote, interval }: SeriesName): string {
  return `${coinId} ${quote} ${interval}`;
}
/** Series of one quote and interval. */
export type SeriesOfCoins = Omit<SeriesName, 'coinId'> & { readonly coinIds: readonly string[] };
/** A span of time of these series. */
export type SeriesSpan = SeriesOfCoins & { readonly span: Span };
export const ALL_INTERVALS: readonly Interval[] = [...INTERVALS, ...PRICE_INTERVALS];

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const WIDTH_MS: Readonly<Record<CandleInterval | PriceWidth, number>> = {
  '5m': 5 * MINUTE,
  '10m': 10 * MINUTE,
  '15m': 15 * MINUTE,
  '30m': 30 * MINUTE,
  '45m': 45 * MINUTE,
  '1h': HOUR,
  '2h': 2 * HOUR,
  '3h': 3 * HOUR,
  '6h': 6 * HOUR,
  '12h': 12 * HOUR,
  '24h': DAY,
  '1d': DAY,
  '7d': 7 * DAY,
  '14d': 14 * DAY,
  '30d': 30 * DAY,
  '90d': 90 * DAY,
  '365d': 365 * DAY,
};

export const INTERVAL_MS = Object.fromEntries(
  ALL_INTERVALS.map((interval) => [interval, WIDTH_MS[widthOf(interval)]]),
) as Readonly<Record<Interval, number>>;

export function priceInterval<Width extends PriceWidth>(width: Width): `prices-${Width}` {
  return `prices-${width}`;
}

export function isCandleInterval(text: string): text is CandleInterval {
  return (INTERVALS as readonly string[]).includes(text);
}

export function isPriceInterval(text: string): text is PriceInterval {
  return (PRICE_INTERVALS as readonly string[]).includes(text);
}

export function isInterval(text: string): text is Interval {
  return isCandleInterval(text) || isPriceInterval(text);
}

/** The width alone, as the upstream spells it. */
export function widthOf(interval: Interval): CandleInterval | PriceWidth {
  return interval.replace('prices-', '') as CandleInterval | PriceWidth;
}

/** The rows of such a series, for texts: `24h candles`, `1d prices`. */
export function describeInterval(interval: Interval): string {
  return `${widthOf(interval)} ${isPriceInterval(interval) ? 'prices' : 'candles'}`;
}

/** The noun for one row of such a series, for texts. */
export function rowNoun(interval: Interval): 'price' | 'candle' {
  return isPriceInterval(interval) ? 'price' : 'candle';
}

/**
 * Milliseconds after its end during which the upstream may still correct a slot; only later answers about the slot are final. It is the
 * width of the slot, at most a day.
 */
export function settleMs(interval: Interval): number {
  return Math.min(INTERVAL_MS[interval], DAY);
}

/** The latest open time of the grid that is ≤ `at`. All grids start at 1970-01-01T00:00:00Z, so days are UTC days (decision 85). */
export function floorToGrid(at: Instant, interval: Interval): Instant {
  const width = INTERVAL_MS[interval];
  return Math.floor(at / width) * width;
}

/** The earliest open time of the grid that is ≥ `at`. */
export function ceilToGrid(at: Instant, interval: Interval): Instant {
  const width = INTERVAL_MS[interval];
  return Math.ceil(at / width) * width;
}

/** The end of the span whose candles were closed and settled at `asOf`: every slot that opens before it is final. */
export function settledUntil(asOf: Instant, interval: Interval): Instant {
  return floorToGrid(asOf - settleMs(interval), interval);
}
