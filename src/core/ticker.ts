/** Tickers as columns: the form in which Chandler stores a snapshot. */

/** The changes of a price. The same changes are stored for an exchange rate. */
export const RATE_CHANGES = [
  'percent_change_15m',
  'percent_change_30m',
  'percent_change_1h',
  'percent_change_6h',
  'percent_change_12h',
  'percent_change_24h',
  'percent_change_7d',
  'percent_change_30d',
  'percent_change_1y',
] as const;
export type RateChange = (typeof RATE_CHANGES)[number];

const QUOTE_NUMBERS = [
  'price',
  'volume_24h',
  'volume_24h_change_24h',
  'market_cap',
  'market_cap_change_24h',
  ...RATE_CHANGES,
  'ath_price',
] as const;
/** The keys of a quote in the order of the upstream. */
export const TICKER_QUOTE_KEYS = [...QUOTE_NUMBERS, 'ath_date', 'percent_from_price_ath'] as const;
/** The numbers of a ticker, in the order of the columns of `market.ticker` and named as in the API; prices are in US dollars. */
export const TICKER_NUMBERS = [
  ...QUOTE_NUMBERS,
  'percent_from_price_ath',
  'circulating_supply',
  'total_supply',
  'max_supply',
  'beta_value',
] as const;
export type TickerNumber = (typeof TICKER_NUMBERS)[number];

/**
 * Parallel arrays, with each coin once. Numbers are finite, or NaN when the upstream sent none; so each needs only eight bytes.
 */
export type TickerColumns = {
  readonly coinId: string[];
  /** 0 when the coin has no rank. */
  readonly rank: number[];
  /** This instant and the next two come from the upstream. */
  readonly updatedAt: number[];
  readonly athAt: number[];
  readonly firstDataAt: number[];
  /** Places in the answer, from 0. */
  readonly position: number[];
  /** The JSON of the row, if JSON made from its columns would differ; else null. */
  readonly answer: (string | null)[];
  readonly numbers: Readonly<Record<TickerNumber, number[]>>;
};

export function noTickers(): TickerColumns {
  const numbers = Object.fromEntries(TICKER_NUMBERS.map((name) => [name, []])) as unknown as TickerColumns['numbers'];
  return { coinId: [], rank: [], updatedAt: [], athAt: [], firstDataAt: [], position: [], answer: [], numbers };
}

/** The tickers at the positions for which `keep` returns true. */
export function pickTickers(columns: TickerColumns, keep: (position: number) => boolean): TickerColumns {
  const positions = columns.coinId.map((_, i) => keep(i));
  return mapColumns(columns, (values) => values.filter((_, i) => positions[i]));
}

/** The same tickers in pieces of at most `size`. */
export function* inPieces(columns: TickerColumns, size: number): Generator<TickerColumns> {
  for (let from = 0; from < columns.coinId.length; from += size)
    yield mapColumns(columns, (values) => values.slice(from, from + size));
}

function mapColumns(columns: TickerColumns, change: <T>(values: readonly T[]) => T[]): TickerColumns {
  const numbers = Object.fromEntries(TICKER_NUMBERS.map((name) => [name, change(columns.numbers[name])]));
  return {
    coinId: change(columns.coinId),
    rank: change(columns.rank),
    updatedAt: change(columns.updatedAt),
    athAt: change(columns.athAt),
    firstDataAt: change(columns.firstDataAt),
    position: change(columns.position),
    answer: change(columns.answer),
    numbers: numbers as TickerColumns['numbers'],
  };
}
