/** What the checks of `plausibility.ts` compare: the candles of an answer, and those that are stored. Pure. */
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Neighbours, PricedCandle, StoredCandle } from '../../store/candle/neighbours.ts';
import type { Sample } from '../../store/candle/other-intervals.ts';

export type Implausible = {
  readonly kind:
    | 'null'
    | 'zero'
    | 'constant'
    | 'rewritten'
    | 'shifted'
    | 'broken'
    | 'level'
    | 'thinned'
    | 'other interval'
    | 'open';
  /** What is implausible, for `market.gaps`. */
  readonly detail: string;
  /** Open times of stored final candles that cannot be true if the answer is. */
  readonly contradicts?: readonly Instant[];
};

export type CheckedAnswer = {
  readonly interval: Interval;
  readonly candles: CandleColumns;
  readonly beside: Neighbours;
  /** What other intervals of the same coin and quote have stored for the stretch. */
  readonly samples: readonly Sample[];
};

export function rowsOf(c: CandleColumns): StoredCandle[] {
  return c.openTime.map((at, i) => [at, c.open[i]!, c.high[i]!, c.low[i]!, c.close[i]!, c.volume[i]!, c.marketCap[i]!]);
}

export const pricesOf = ([, open, high, low, close]: PricedCandle) => [open, high, low, close] as const;
export const isNull = (row: StoredCandle) => pricesOf(row).every((price) => price === null);
export const isSame = (a: StoredCandle, b: StoredCandle) => pricesOf(a).every((price, i) => price === pricesOf(b)[i]);
const NUMBERS = [1, 2, 3, 4, 5, 6] as const;
/** Compares volume and market cap as well. */
export const isEqual = (a: StoredCandle, b: StoredCandle) => NUMBERS.every((n) => a[n] === b[n]);

/** The stored candles before and after the whole answer. */
export function outside({ beside }: CheckedAnswer, rows: readonly StoredCandle[]): StoredCandle[] {
  const [first, last] = [rows[0]![0], rows.at(-1)![0]];
  return beside.candles.filter(([at]) => at < first || at > last);
}
