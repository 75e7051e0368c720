/** What any source of market data can answer: the warehouse and the simulator both do, and `service/` serves either. */
import type { Instant } from '../clock.ts';
import type { Candle, Quote } from '../core/candle.ts';
import type { Interval } from '../core/interval.ts';
import type { CoinSummary, Exchange, GlobalOverview, Ticker } from './records.ts';

export type OhlcvQuery = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: Interval;
  /** First and last open time asked for, both inclusive (decision 2). */
  readonly from: Instant;
  readonly to: Instant;
  /** At most so many candles, the earliest ones. */
  readonly limit: number;
};

/** A candle as answered: while it is still moving its `closeTime` is the minute of its data, else `openTime + width − 1 s` (decisions 15, 17). */
export type OhlcvCandle = Candle & { readonly closeTime: Instant };

export type MarketData = {
  /** Ascending; `null` when the coin is unknown (the service decides what that looks like on the wire). */
  ohlcv(query: OhlcvQuery): Promise<readonly OhlcvCandle[] | null>;
  /** Every active coin, by rank. `quotes` are upper-case symbols (`USD`, `BTC`). */
  tickers(query: { readonly quotes: readonly string[] }): Promise<readonly Ticker[]>;
  ticker(query: { readonly coinId: string; readonly quotes: readonly string[] }): Promise<Ticker | null>;
  /** Every coin ever known, inactive ones too (rank 0). */
  coins(): Promise<readonly CoinSummary[]>;
  global(): Promise<GlobalOverview>;
  exchanges(query: { readonly quotes: readonly string[] }): Promise<readonly Exchange[]>;
};
