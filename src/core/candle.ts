/** Candles, one by one and as columns. */
import type { Instant } from '../clock.ts';

/** Prices in the series' quote; volume and market cap in the quote's currency. Null where upstream says null. */
export type Candle = {
  readonly openTime: Instant;
  readonly open: number | null;
  readonly high: number | null;
  readonly low: number | null;
  readonly close: number | null;
  readonly volume: number | null;
  readonly marketCap: number | null;
};

/** The same candles as parallel arrays, sorted by open time, each open time once: how they travel to the database. */
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
