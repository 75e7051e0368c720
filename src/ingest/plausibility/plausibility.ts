/**
 * Is a well-formed answer plausible, compared with what is stored beside it? An implausible answer needs a second opinion before it is believed:
 * markets do crash, but an upstream that fails for a moment is likelier. Pure.
 *
 * A long answer shows what is usual in itself. For a short one, the stored neighbours show it. If neither does, only prices that are null or zero are
 * implausible.
 */
import { INTERVAL_MS, isPriceInterval } from '../../core/interval.ts';
import { contains, type Span, slotsAt, subtract } from '../../core/span.ts';
import type { StoredCandle } from '../../store/candle/neighbours.ts';
import { findBreak, findContradicted, findDisorder, findJump, findOtherLevel, findShifted } from './continuity.ts';
import {
  type CheckedAnswer,
  type Implausible,
  isEqual,
  isNull,
  isSame,
  outside,
  rowsOf,
} from './implausible-candles.ts';
import { compareWithOtherInterval } from './other-interval.ts';
import { withoutNumbers } from './without-numbers.ts';

/** An answer with so many rows shows what is usual in it. A shorter answer needs so many rows together with its neighbours. */
const LEAST_ROWS = 12;
/** The most final candles that may change at once. */
const FEW = 10;
/** A series with so many final slots is known well enough that a hole in a short answer is unusual. */
const WELL_KNOWN = 200;

/** The first implausible finding about the answer; null: there is none. */
export function findImplausible(answer: CheckedAnswer): Implausible | null {
  if (answer.candles.openTime.length === 0) return null;
  const rows = rowsOf(answer.candles);
  const found = firstFound(answer, rows);
  if (found === null) return null;
  const detail = isPriceInterval(answer.interval) ? found.detail.replace(/candle(?=s?\b)/g, 'row') : found.detail;
  return { ...found, detail, contradicts: findContradicted(answer, rows) };
}

function firstFound(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  return (
    findValueless(answer, rows) ??
    rewritten(answer, rows) ??
    findConstant(answer, rows) ??
    partlyFalse(answer, rows) ??
    findJump(answer, rows, LEAST_ROWS) ??
    findShifted(answer, rows) ??
    findDisorder(answer, rows, LEAST_ROWS) ??
    findBreak(answer, rows) ??
    findOtherLevel(answer, rows, LEAST_ROWS) ??
    withoutNumbers(answer, rows) ??
    thinned(answer, rows) ??
    compareWithOtherInterval(answer, rows)
  );
}

const isZero = (row: StoredCandle) => row.slice(1, 5).every((price) => price === 0);

/** Do all stored neighbours pass the test as well? Then the finding is nothing new. */
function isUsual({ beside }: CheckedAnswer, test: (row: StoredCandle) => boolean): boolean {
  return beside.candles.length > 0 && beside.candles.every(test);
}

/** Finds an answer in which most rows have no prices, or prices of zero. */
function findValueless(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  for (const [kind, test, what] of [
    ['null', isNull, 'no prices'],
    ['zero', isZero, 'prices of zero'],
  ] as const) {
    const n = rows.filter(test).length;
    if (n > rows.length / 2 && !isUsual(answer, test))
      return { kind, detail: `${n} of ${rows.length} candles have ${what}` };
  }
  return null;
}

/** Finds an answer in which nearly all candles equal the one before. In a short answer this is implausible only if no two neighbours are equal. */
function findConstant(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const beside = outside(answer, rows);
  if (rows.length < 2 || (rows.length < LEAST_ROWS && rows.length + beside.length < LEAST_ROWS)) return null;
  const repeats = repeatsIn(rows);
  if (repeats < 0.8 * (rows.length - 1) || isUsual(answer, (row) => isSame(row, rows[0]!))) return null;
  if (rows.length < LEAST_ROWS && repeatsIn(beside) > 0) return null;
  return { kind: 'constant', detail: `${repeats + 1} of ${rows.length} candles are equal` };
}

const PARTS = [
  ['null', isNull, 'no prices'],
  ['zero', isZero, 'prices of zero'],
  ['constant', isRepeat, 'the numbers of the one before'],
] as const;

/** Finds a long run of rows without prices, with zero prices, or repeating one candle, if no stored candles and not all rows are like that. */
function partlyFalse({ beside }: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  for (const [kind, isSo, what] of PARTS) {
    const first = kind === 'constant' ? 1 : 0;
    const n = longestRun(rows, isSo);
    if (n + first < LEAST_ROWS || n + first === rows.length || longestRun(beside.candles, isSo) > 0) continue;
    return { kind, detail: `${n} candles one after the other, of ${rows.length}, have ${what}` };
  }
  return null;
}

/** Volume and market cap must be equal too: unlike prices, they do not repeat by chance. */
function isRepeat(row: StoredCandle, before: StoredCandle | undefined): boolean {
  return before !== undefined && !isNull(row) && isEqual(row, before);
}

function longestRun(
  rows: readonly StoredCandle[],
  isSo: (row: StoredCandle, before: StoredCandle | undefined) => boolean,
): number {
  let [run, longest] = [0, 0];
  for (const [i, row] of rows.entries()) {
    run = isSo(row, rows[i - 1]) ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}

function repeatsIn(rows: readonly StoredCandle[]): number {
  return rows.filter((row, i) => i > 0 && !isNull(row) && isSame(row, rows[i - 1]!)).length;
}

/**
 * Finds an answer in which more than a few final candles have changed in any number or are missing, or in which one has lost its prices. This also
 * counts when the stored candles are from a younger answer and this one would change none of them: the rest of it is then equally doubtful.
 *
 * After a repair of the whole series no slot is final. Then prices are compared with the candles that the repair left: otherwise one false answer
 * could replace all of them.
 */
function rewritten({ beside }: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const told = new Map(rows.map((row) => [row[0], row]));
  const [first, last] = [rows[0]![0], rows.at(-1)![0]];
  const isAny = beside.final.length === 0;
  let changed = 0;
  for (const stored of beside.candles) {
    const at = stored[0];
    if (!isAny && !contains(beside.final, at)) continue;
    const row = told.get(at);
    if (row === undefined) {
      if (at > first && at < last) changed++;
      continue;
    }
    if (!isAny && isNull(row) && !isNull(stored)) return { kind: 'null', detail: 'a final candle has lost its prices' };
    if (isAny ? !isSame(row, stored) : !isEqual(row, stored)) changed++;
  }
  return changed <= FEW
    ? null
    : { kind: 'rewritten', detail: `${changed} ${isAny ? 'stored' : 'final'} candles are different` };
}

/**
 * Finds an answer with holes in many places, far more than the series has had. One long hole does not count: a coin that was not traded for a month
 * looks like that, and an upstream that omits rows does not.
 */
function thinned({ interval, beside }: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const { covered, coveredCandles } = beside;
  const isLong = rows.length >= LEAST_ROWS;
  if (!isLong && covered < WELL_KNOWN) return null;
  const width = INTERVAL_MS[interval];
  // Slots that are known to be empty are nothing new: an answer about them has few rows. A slot with a final candle is not known to be empty: the
  // answer lacks it if another run stored the candle after the answer was made.
  const stored = slotsAt(
    beside.candles.map(([at]) => at),
    width,
  );
  const empty = subtract(beside.final, stored);
  const isNew = (hole: Span) => hole.from < hole.to && subtract([hole], empty).length > 0;
  const holes = rows.filter((row, i) => i > 0 && isNew({ from: rows[i - 1]![0] + width, to: row[0] })).length;
  const usual = covered > 0 ? 1 - coveredCandles / covered : 0;
  if (holes / rows.length <= Math.max(0.2, (isLong ? 3 : 20) * usual)) return null;
  return { kind: 'thinned', detail: `there are ${holes} holes between ${rows.length} candles` };
}
