/** Does a long answer lack the volumes or market caps that all stored candles beside it have? Pure. */
import type { StoredCandle } from '../../store/candle/neighbours.ts';
import { type CheckedAnswer, type Implausible, outside } from './implausible-candles.ts';

const COLUMNS = [
  [5, 'volume'],
  [6, 'market cap'],
] as const;
/** Shorter stretches without volume or market cap are usual. */
const LEAST_ROWS = 100;
/** So many neighbours show what is usual. */
const LEAST_NEIGHBOURS = 8;

/** The size of these numbers shows nothing: volumes rise and fall ten-thousandfold within days. */
export function withoutNumbers(answer: CheckedAnswer, rows: readonly StoredCandle[]): Implausible | null {
  const beside = outside(answer, rows);
  if (rows.length < LEAST_ROWS || beside.length < LEAST_NEIGHBOURS) return null;
  for (const [column, name] of COLUMNS) {
    if (rows.some((row) => row[column] !== null) || beside.some((row) => row[column] === null)) continue;
    return { kind: 'null', detail: `none of ${rows.length} candles has a ${name}` };
  }
  return null;
}
