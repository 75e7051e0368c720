/** Compares an answer with what another interval of the same coin and quote says of the same stretch. Pure. */
import { INTERVAL_MS } from '../../core/interval.ts';
import type { PricedCandle, StoredCandle } from '../../store/candle/neighbours.ts';
import type { Sample } from '../../store/candle/other-intervals.ts';
import { type Asked, type Implausible, pricesOf } from './implausible-candles.ts';

/** As logarithms. Of the recorded days 1 in 100 differs by more than 0.02 from its hours, and none by more than 0.07. */
const MOST_DIFFERENCE = 0.02;
const MOST_DIFFERENCE_ALONE = 0.1;

/**
 * More than half of the slots, or the only one, have other prices in the other interval. Volumes are not compared: the upstream's may be sums of
 * 24 hours at any time of the day (upstream-api.md, 1.1 no 9).
 */
export function otherwise({ interval, samples }: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const compared = samples.flatMap((sample) => {
    const ours = asOneCandle(rowsWithin(rows, sample, INTERVAL_MS[interval]));
    const difference = ours === null ? null : differenceOf(ours, sample.candle);
    return difference === null ? [] : [{ sample, difference }];
  });
  const most = compared.length > 1 ? MOST_DIFFERENCE : MOST_DIFFERENCE_ALONE;
  const differing = compared.filter(({ difference }) => difference > most);
  if (differing.length <= compared.length / 2) return null;
  const { sample } = differing[0]!;
  const at = new Date(sample.slot.from).toISOString();
  return {
    kind: 'other interval',
    detail: `the ${sample.interval} candles have other prices in ${differing.length} of ${compared.length} slots, first at ${at}`,
  };
}

function rowsWithin(rows: readonly StoredCandle[], { slot }: Sample, width: number): readonly StoredCandle[] {
  return rows.filter(([at]) => at >= slot.from && at + width <= slot.to);
}

function asOneCandle(rows: readonly StoredCandle[]): PricedCandle | null {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return null;
  const numbers = (column: 2 | 3) => rows.flatMap((row) => row[column] ?? []);
  const [highs, lows] = [numbers(2), numbers(3)];
  const most = (of: number[], choose: (...values: number[]) => number) => (of.length === 0 ? null : choose(...of));
  return [first[0], first[1], most(highs, Math.max), most(lows, Math.min), last[4]];
}

/** The largest difference between two prices of one kind; null where none can be compared. */
function differenceOf(a: PricedCandle, b: PricedCandle): number | null {
  const others = pricesOf(b);
  const differences = pricesOf(a).flatMap((price, i) => {
    const other = others[i];
    return price && other ? [Math.abs(Math.log(price / other))] : [];
  });
  return differences.length === 0 ? null : Math.max(...differences);
}
