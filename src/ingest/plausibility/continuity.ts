/** Checks whether the candles of an answer continue the stored candles before and after it. Pure. */
import type { Instant } from '../../clock.ts';
import { DAY, INTERVAL_MS, isPriceInterval } from '../../core/interval.ts';
import { contains } from '../../core/span.ts';
import type { StoredCandle } from '../../store/candle/neighbours.ts';
import { type CheckedAnswer, type Implausible, isSame, outside } from './implausible-candles.ts';

/** Values with fewer digits repeat by chance. */
const LEAST_DIGITS = 8;
/** So many steps from one candle to the next must be known before they show what is usual. */
const LEAST_STEPS = 6;
/** An unusual step is at least this many times the largest known step. */
const TIMES_LARGEST = 5;
/** The least size of an unusual step between daily candles, as a logarithm. Of the recorded daily steps 1 in 500 is larger. */
const LEAST_STEP = 0.025;
const LEAST_STEP_SHORT = 0.01;
/**
 * For prices the least size is this many times larger, because the move of a whole slot lies between two means: of the recorded daily means 1 in 25
 * moves further, of the hourly ones 1 in 229. With the known steps as well, only 6 in 10,000 answers about recorded means count as implausible.
 */
const PRICE_STEPS = 3;
/** With fewer known steps, an unusual step is this many times the least size. */
const TIMES_UNKNOWN = 4;
/** A step of this size, as a logarithm, is no move of a market: one side of it is false. */
const OTHER_SIZE = 1;

/** If the rows of an answer do not continue each other, the median of its steps is this many times the largest step beside it … */
const TIMES_BESIDE = 2;
/** … and larger than this part of the median move from open to close. In the recorded candles it is a tenth of it or less. */
const PART_OF_BODY = 0.5;

/** Two neighbouring candles that cannot both be true: `stored` is the final one, and the other is in the answer. */
type Border = {
  readonly older: StoredCandle;
  readonly newer: StoredCandle;
  readonly stored: StoredCandle;
  readonly step: number;
};

/** Finds a row that has exactly the values of the slot beside it, or of the day before or after. */
export function findShifted(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const [other] = twinsOf(answer, rows);
  return other === undefined ? null : { kind: 'shifted', detail: `a candle has the values of ${isoOf(other)}` };
}

/** Stored candles whose values appear in a row of another slot. */
function twinsOf({ interval, beside }: CheckedAnswer, rows: readonly StoredCandle[]): StoredCandle[] {
  const stored = new Map(beside.candles.map((row) => [row[0], row]));
  const steps = [...new Set([INTERVAL_MS[interval], DAY])].flatMap((ms) => [-ms, ms]);
  return rows.flatMap((row) => {
    const [at, open, high, low, close] = row;
    if (high === low || open === close || String(close).length < LEAST_DIGITS) return [];
    const own = stored.get(at);
    if (own !== undefined && isSame(own, row)) return [];
    return steps.flatMap((step) => {
      const other = stored.get(at + step);
      return other !== undefined && isSame(other, row) ? [other] : [];
    });
  });
}

/** Open times of the stored final candles that cannot be true if the answer is: their prices are of another size, or are those of another slot. */
export function findContradicted(answer: CheckedAnswer, rows: readonly StoredCandle[]): Instant[] {
  const times = new Set(rows.map(([at]) => at));
  const twins = twinsOf(answer, rows).filter(([at]) => contains(answer.beside.final, at) && !times.has(at));
  const ofOtherSize = bordersOf(answer, rows).flatMap(({ stored, step }) => (step > OTHER_SIZE ? [stored] : []));
  return [...new Set([...twins, ...ofOtherSize].map(([at]) => at))];
}

/**
 * A candle opens close to the previous close. If the step between a stored final candle and the row next to it is far larger than all known steps,
 * the rows are those of another coin, another day or another scale. A step of another size does not count as known: next to a false answer that was
 * believed, every other false answer would look plausible.
 */
export function findBreak(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const width = INTERVAL_MS[answer.interval];
  const steps = [...stepsIn(outside(answer, rows), width), ...stepsIn(rows, width)];
  const known = steps.filter((step) => step <= OTHER_SIZE);
  const isOfPrices = isPriceInterval(answer.interval);
  const least = Math.max(LEAST_STEP * Math.sqrt(width / DAY), LEAST_STEP_SHORT) * (isOfPrices ? PRICE_STEPS : 1);
  const isKnown = known.length >= LEAST_STEPS;
  const usual = isKnown ? Math.max(least, TIMES_LARGEST * Math.max(...known)) : TIMES_UNKNOWN * least;
  const most = Math.min(usual, OTHER_SIZE);
  const border = bordersOf(answer, rows).find(({ step }) => step > most);
  if (border === undefined) return null;
  const { older, newer } = border;
  return { kind: 'broken', detail: `prices go from ${older[4]} to ${newer[1]} at ${isoOf(newer)}` };
}

/** The places where a stored final candle is next to the answer's first or last row. */
function bordersOf({ interval, beside }: CheckedAnswer, rows: readonly StoredCandle[]): Border[] {
  const width = INTERVAL_MS[interval];
  const finalAt = (at: number) =>
    contains(beside.final, at) ? beside.candles.find((row) => row[0] === at) : undefined;
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const [before, after] = [finalAt(first[0] - width), finalAt(last[0] + width)];
  const border = (older: StoredCandle, newer: StoredCandle, stored: StoredCandle): Border[] => {
    const step = stepBetween(older, newer);
    return step === null ? [] : [{ older, newer, stored, step }];
  };
  return [...(before ? border(before, first, before) : []), ...(after ? border(last, after, after) : [])];
}

/**
 * Finds a long answer whose candles do not continue each other, although the stored candles beside it do: its rows are in a wrong order, or two
 * columns are swapped. Without this check, the large steps of such an answer would count as usual. Prices have no open and close, so they pass.
 */
export function findDisorder(
  answer: CheckedAnswer,
  rows: readonly StoredCandle[],
  leastRows: number,
): Implausible | null {
  if (isPriceInterval(answer.interval)) return null;
  const width = INTERVAL_MS[answer.interval];
  const own = stepsIn(rows, width);
  const beside = stepsIn(outside(answer, rows), width);
  if (own.length < leastRows - 1 || beside.length < LEAST_STEPS) return null;
  const bodies = rows.flatMap(([, open, , , close]) => (open && close ? [Math.abs(Math.log(close / open))] : []));
  const [step, largest] = [medianOf(own), Math.max(...beside)];
  if (step <= TIMES_BESIDE * largest || step <= PART_OF_BODY * medianOf(bodies)) return null;
  const percent = (of: number) => `${(100 * of).toPrecision(2)} %`;
  const detail = `from one candle to the next prices move by ${percent(step)} (median), beside them by ${percent(largest)} at most`;
  return { kind: 'broken', detail };
}

/** Finds a step of another size between two candles of an answer that is long, or has enough stored neighbours, if none of them has one. */
export function findJump(answer: CheckedAnswer, rows: readonly StoredCandle[], leastRows: number): Implausible | null {
  if (rows.length + outside(answer, rows).length < leastRows) return null;
  const { interval, beside } = answer;
  const width = INTERVAL_MS[interval];
  const isJump = (row: StoredCandle, before: StoredCandle | undefined) =>
    before !== undefined && row[0] - before[0] === width && (stepBetween(before, row) ?? 0) > OTHER_SIZE;
  const at = rows.findIndex((row, i) => isJump(row, rows[i - 1]));
  if (at === -1 || beside.candles.some((row, i, all) => isJump(row, all[i - 1]))) return null;
  const [older, newer] = [rows[at - 1]!, rows[at]!];
  return { kind: 'broken', detail: `prices go from ${older[4]} to ${newer[1]} at ${isoOf(newer)}` };
}

/** The steps from each close to the next open, as logarithms, where one candle directly follows the other. */
function stepsIn(rows: readonly StoredCandle[], width: number): number[] {
  return rows.flatMap((row, i) => {
    const before = rows[i - 1];
    const step = before !== undefined && row[0] - before[0] === width ? stepBetween(before, row) : null;
    return step === null ? [] : [step];
  });
}

function stepBetween(older: StoredCandle, newer: StoredCandle): number | null {
  const [close, open] = [older[4], newer[1]];
  return close && open ? Math.abs(Math.log(open / close)) : null;
}

/**
 * Finds a jump between stored candles and the answer that is far larger than their moves. Unlike a break it may lie across a hole, where the moves
 * are unknown.
 */
export function findOtherLevel(
  answer: CheckedAnswer,
  rows: readonly StoredCandle[],
  leastRows: number,
): Implausible | null {
  const width = INTERVAL_MS[answer.interval];
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const beside = outside(answer, rows);
  const judged = rows.length >= leastRows ? rows : [...beside, ...rows].sort((a, b) => a[0] - b[0]);
  if (judged.length < leastRows) return null;
  const usual = usualMove(judged);
  const jumps: readonly (readonly [StoredCandle | undefined, StoredCandle | undefined])[] = [
    [beside.findLast(([at]) => at < first[0]), first],
    [last, beside.find(([at]) => at > last[0])],
  ];
  for (const [older, newer] of jumps) {
    const [from, to] = [older?.[4], newer?.[1]];
    if (!from || !to) continue;
    const slots = (newer![0] - older![0]) / width;
    const least = Math.max(Math.log(2.5) * Math.sqrt(width / DAY), 0.1, 12 * usual);
    if (Math.abs(Math.log(to / from)) > least * Math.sqrt(slots))
      return {
        kind: 'level',
        detail: `prices go from ${from} to ${to} between ${isoOf(older!)} and ${isoOf(newer!)}`,
      };
  }
  return null;
}

/** The median move from close to close, as a logarithm. */
function usualMove(rows: readonly StoredCandle[]): number {
  const moves = rows.flatMap((row, i) => {
    const [from, to] = [rows[i - 1]?.[4], row[4]];
    return from && to ? [Math.abs(Math.log(to / from))] : [];
  });
  return medianOf(moves);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function isoOf([at]: StoredCandle): string {
  return new Date(at).toISOString();
}
