/**
 * Is a well-formed answer plausible, given what is stored beside it? What is not needs a second opinion before it is believed: markets do crash,
 * but an upstream that fails for a moment is likelier. Pure.
 */
import type { CandleColumns } from '../../core/candle.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { contains, type Spans } from '../../core/span.ts';
import type { Neighbours, StoredCandle } from '../../store/candle/neighbours.ts';

export type Implausible = {
  readonly kind: 'null' | 'zero' | 'constant' | 'rewritten' | 'shifted' | 'level' | 'thinned';
  /** For `market.gaps`: what is implausible. */
  readonly detail: string;
};

export type Asked = {
  readonly interval: Interval;
  readonly candles: CandleColumns;
  readonly beside: Neighbours;
  /** Stored final slots that this answer would change: covered, settled by this answer, and not told by a younger one. */
  readonly final: Spans;
};

/** A shorter answer says too little about what is usual; of it only prices that are null or zero are implausible. */
const LEAST_ROWS = 12;
/** So many final slots may change at once. */
const FEW = 10;
/** Values with fewer digits repeat by chance. */
const LEAST_DIGITS = 8;

/** The first thing that is implausible about the answer; null: nothing. */
export function findImplausible(asked: Asked): Implausible | null {
  if (asked.candles.openTime.length === 0) return null;
  const rows = rowsOf(asked.candles);
  const found = valueless(asked, rows) ?? rewritten(asked, rows);
  if (found !== null || rows.length < LEAST_ROWS) return found;
  return constant(asked, rows) ?? shifted(asked, rows) ?? level(asked, rows) ?? thinned(asked, rows);
}

function rowsOf(c: CandleColumns): StoredCandle[] {
  return c.openTime.map((at, i) => [at, c.open[i]!, c.high[i]!, c.low[i]!, c.close[i]!]);
}

const pricesOf = ([, open, high, low, close]: StoredCandle) => [open, high, low, close];
const isNull = (row: StoredCandle) => pricesOf(row).every((price) => price === null);
const isZero = (row: StoredCandle) => pricesOf(row).every((price) => price === 0);
const isSame = (a: StoredCandle, b: StoredCandle) => pricesOf(a).every((price, i) => price === pricesOf(b)[i]);

/** Is every stored neighbour so? Then it is nothing new. */
function isUsual({ beside }: Asked, test: (row: StoredCandle) => boolean): boolean {
  return beside.candles.length > 0 && beside.candles.every(test);
}

/** Rows without prices, or with prices of zero. */
function valueless(asked: Asked, rows: readonly StoredCandle[]): Implausible | null {
  for (const [kind, test, what] of [
    ['null', isNull, 'no prices'],
    ['zero', isZero, 'prices of zero'],
  ] as const) {
    const n = rows.filter(test).length;
    if (n > rows.length / 2 && !isUsual(asked, test))
      return { kind, detail: `${n} of ${rows.length} candles have ${what}` };
  }
  return null;
}

function constant(asked: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const repeats = rows.filter((row, i) => i > 0 && !isNull(row) && isSame(row, rows[i - 1]!)).length;
  if (repeats < 0.8 * (rows.length - 1) || isUsual(asked, (row) => isSame(row, rows[0]!))) return null;
  return { kind: 'constant', detail: `${repeats + 1} of ${rows.length} candles are equal` };
}

/** More than a few final slots changed or removed, or one turned to null. */
function rewritten({ beside, final }: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const told = new Map(rows.map((row) => [row[0], row]));
  const [first, last] = [rows[0]![0], rows.at(-1)![0]];
  let changed = 0;
  for (const stored of beside.candles) {
    const at = stored[0];
    if (!contains(final, at)) continue;
    const row = told.get(at);
    if (row === undefined) {
      if (at > first && at < last) changed++;
      continue;
    }
    if (isNull(row) && !isNull(stored)) return { kind: 'null', detail: 'a final candle would lose its prices' };
    if (!isSame(row, stored)) changed++;
  }
  return changed <= FEW ? null : { kind: 'rewritten', detail: `${changed} final candles would change` };
}

/** A row that has exactly the values of the slot beside it, or of the day before or after. */
function shifted({ interval, beside }: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const stored = new Map(beside.candles.map((row) => [row[0], row]));
  const steps = new Set([INTERVAL_MS[interval], DAY]);
  for (const row of rows) {
    const [at, open, high, low, close] = row;
    if (high === low || open === close || String(close).length < LEAST_DIGITS) continue;
    const own = stored.get(at);
    if (own !== undefined && isSame(own, row)) continue;
    for (const step of [...steps].flatMap((ms) => [-ms, ms])) {
      const other = stored.get(at + step);
      if (other !== undefined && isSame(other, row))
        return { kind: 'shifted', detail: `a candle has the values of ${new Date(at + step).toISOString()}` };
    }
  }
  return null;
}

/** A jump between stored candles and those of the answer that is far larger than those within the answer. */
function level({ interval, beside }: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const width = INTERVAL_MS[interval];
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const before = beside.candles.findLast(([at]) => at < first[0]);
  const after = beside.candles.find(([at]) => at > last[0]);
  const usual = usualMove(rows);
  const jumps: readonly (readonly [StoredCandle | undefined, StoredCandle | undefined])[] = [
    [before, first],
    [last, after],
  ];
  for (const [older, newer] of jumps) {
    const [from, to] = [older?.[4], newer?.[1]];
    if (!from || !to) continue;
    const slots = (newer![0] - older![0]) / width;
    const least = Math.max(Math.log(2.5) * Math.sqrt(width / DAY), 0.1, 12 * usual);
    if (Math.abs(Math.log(to / from)) > least * Math.sqrt(slots))
      return {
        kind: 'level',
        detail: `prices go from ${from} to ${to} between ${new Date(older![0]).toISOString()} and ${new Date(newer![0]).toISOString()}`,
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
  return moves.sort((a, b) => a - b)[moves.length >> 1] ?? 0;
}

/**
 * Holes all over the answer, far more than the series has had. One long hole is none of these: a coin that was not traded for a month looks so,
 * and an upstream that leaves out rows does not.
 */
function thinned({ interval, beside }: Asked, rows: readonly StoredCandle[]): Implausible | null {
  const holes = rows.filter((row, i) => i > 0 && row[0] - rows[i - 1]![0] > INTERVAL_MS[interval]).length;
  const { covered, coveredCandles } = beside;
  const usual = covered > 0 ? 1 - coveredCandles / covered : 0;
  if (holes / rows.length <= Math.max(0.2, 3 * usual)) return null;
  return { kind: 'thinned', detail: `there are ${holes} holes between ${rows.length} candles` };
}
