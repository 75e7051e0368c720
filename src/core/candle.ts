/** Candles as objects and as columns. */
import type { Instant } from '../clock.ts';

/** Prices, volume and market cap are in the quote of the series. Null where the upstream sends null. */
export type Candle = {
  readonly openTime: Instant;
  readonly open: number | null;
  readonly high: number | null;
  readonly low: number | null;
  readonly close: number | null;
  readonly volume: number | null;
  readonly marketCap: number | null;
};

/** Candles as parallel arrays, sorted by open time, each open time once. Statements send them to Postgres in this form. */
export type CandleColumns = {
  readonly openTime: Instant[];
  readonly open: (number | null)[];
  readonly high: (number | null)[];
  readonly low: (number | null)[];
  readonly close: (number | null)[];
  readonly volume: (number | null)[];
  readonly marketCap: (number | null)[];
};

export const QUOTES = ['usd', 'btc'] as const;
export type Quote = (typeof QUOTES)[number];

export function isQuote(text: string): text is Quote {
  return (QUOTES as readonly string[]).includes(text);
}
