/** Tickers as columns: how a snapshot travels to the database. */
import type { Instant } from '../clock.ts';

/** The numbers of a ticker, in the order of the columns of `market.ticker`; prices in US dollars, spelt as upstream does. */
export const TICKER_NUMBERS = [
  'price',
  'volume_24h',
  'volume_24h_change_24h',
  'market_cap',
  'market_cap_change_24h',
  'percent_change_15m',
  'percent_change_30m',
  'percent_change_1h',
  'percent_change_6h',
  'percent_change_12h',
  'percent_change_24h',
  'percent_change_7d',
  'percent_change_30d',
  'percent_change_1y',
  'ath_price',
  'percent_from_price_ath',
  'circulating_supply',
  'total_supply',
  'max_supply',
  'beta_value',
] as const;
export type TickerNumber = (typeof TICKER_NUMBERS)[number];

/** Parallel arrays, each coin once. Numbers are finite, or null where upstream says nothing. */
export type TickerColumns = {
  readonly coinId: string[];
  /** 0: none. */
  readonly rank: number[];
  /** As upstream says itself; null when it does not. */
  readonly updatedAt: (Instant | null)[];
  readonly athAt: (Instant | null)[];
  readonly firstDataAt: (Instant | null)[];
  readonly numbers: Readonly<Record<TickerNumber, (number | null)[]>>;
};

export function noTickers(): TickerColumns {
  const numbers = Object.fromEntries(TICKER_NUMBERS.map((name) => [name, []])) as unknown as TickerColumns['numbers'];
  return { coinId: [], rank: [], updatedAt: [], athAt: [], firstDataAt: [], numbers };
}

/** Only those at the positions that `keep` says yes to. */
export function pickTickers(columns: TickerColumns, keep: (position: number) => boolean): TickerColumns {
  const positions = columns.coinId.map((_, i) => keep(i));
  const only = <T>(values: readonly T[]) => values.filter((_, i) => positions[i]);
  const numbers = Object.fromEntries(TICKER_NUMBERS.map((name) => [name, only(columns.numbers[name])]));
  return {
    coinId: only(columns.coinId),
    rank: only(columns.rank),
    updatedAt: only(columns.updatedAt),
    athAt: only(columns.athAt),
    firstDataAt: only(columns.firstDataAt),
    numbers: numbers as TickerColumns['numbers'],
  };
}
