/** Compares an answer with another stored interval of the same coin and quote. Pure. */
import { formatCounted } from '../../core/format.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import { subtract } from '../../core/span.ts';
import type { Neighbours, PricedCandle, StoredCandle } from '../../store/candle/neighbours.ts';
import type { Sample } from '../../store/candle/other-intervals.ts';
import { type CheckedAnswer, type Implausible, pricesOf } from './implausible-candles.ts';

/**
 * The largest usual difference, as a logarithm. Of the recorded days 1 in 100 differs by more than 0.02 from its hours, and none by more than 0.07.
 */
const MOST_DIFFERENCE = 0.02;
/** The largest usual difference when there is only one slot to compare. */
const MOST_OF_ONE = 0.1;
/**
 * The largest usual difference of one slot among many: of hundreds of slots of a coin with little trade, one may have a trade that the other interval
 * omits.
 */
const MOST_AMONG_MANY = 0.3;

/**
 * An answer is implausible if more than half of its slots have other prices in the other interval, if one slot differs far more than that, or if the
 * other interval has a candle where the answer has none. Volumes are not compared: the upstream's may be sums of 24 hours at any time of the day
 * (upstream-api.md, 1.1 no 9).
 */
export function compareWithOtherInterval(
  { interval, samples, beside }: CheckedAnswer,
  rows: readonly StoredCandle[],
): Implausible | null {
  const width = INTERVAL_MS[interval];
  const compared = samples.map((sample) => {
    const ours = asOneCandle(rowsWithin(rows, sample, width));
    return { sample, isMissing: ours === null, difference: ours === null ? null : differenceOf(ours, sample.candle) };
  });
  const missing = compared.filter(
    ({ isMissing, sample }) => isMissing && !isKnownEmpty(beside, sample) && hasPrice(sample),
  );
  const known = compared.filter(({ difference }) => difference !== null);
  const largest = (most: number) => known.filter(({ difference }) => difference! > most);
  const unlike = largest(MOST_DIFFERENCE);
  const isMany = known.length > 1;
  const isMost = isMany && unlike.length > known.length / 2;
  const wrong = isMost ? unlike : largest(isMany ? MOST_AMONG_MANY : MOST_OF_ONE);
  if (wrong.length > 0)
    return differing(
      wrong[0]!.sample,
      (name) => `the ${name} candles have other prices in ${wrong.length} of ${formatCounted(known.length, 'slot')}`,
    );
  if (missing.length > 0)
    return differing(
      missing[0]!.sample,
      (name) => `the ${name} candles have ${formatCounted(missing.length, 'slot')} in which this answer has no candle`,
    );
  return null;
}

function differing({ interval, slot }: Sample, describe: (interval: string) => string): Implausible {
  return { kind: 'other interval', detail: `${describe(interval)}, first at ${new Date(slot.from).toISOString()}` };
}

/** Final answers have already reported the slot as empty: nothing new. */
function isKnownEmpty({ final }: Neighbours, { slot }: Sample): boolean {
  return subtract([slot], final).length === 0;
}

function hasPrice({ candle }: Sample): boolean {
  return pricesOf(candle).some((price) => price !== null);
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

/** The largest difference between two prices of one kind, as a logarithm; null when none can be compared. */
function differenceOf(a: PricedCandle, b: PricedCandle): number | null {
  const others = pricesOf(b);
  const differences = pricesOf(a).flatMap((price, i) => {
    const other = others[i];
    return price && other ? [Math.abs(Math.log(price / other))] : [];
  });
  return differences.length === 0 ? null : Math.max(...differences);
}
