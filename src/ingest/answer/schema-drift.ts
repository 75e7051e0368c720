/** Tells rows that are bad from an interface that has changed: of the latter nothing is kept, and what was asked is asked again. */
import { hasPrices, type OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import { repeatedRows } from '../../store/candle/quarantine.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** What is wrong with an answer as a whole; null: nothing, or its rows by themselves. */
export type DriftCheck = (seriesId: number, rows: readonly OhlcvRowRead[]) => Promise<string | null>;

export function createDriftCheck(sql: Sql): DriftCheck {
  /** Since the last answer of which no row could be read, one could. */
  let oneWasReadable = false;
  return async (seriesId, rows) => {
    if (rows.length === 0) return null;
    const problem = drifted(rows);
    if (problem === null) {
      oneWasReadable = true;
      return null;
    }
    // One row alone is no witness against the interface, when another answer could just be read; nor are those that were just so before.
    const isRow = (rows.length === 1 && oneWasReadable) || (await areRepeated(sql, seriesId, rows));
    oneWasReadable = false;
    return isRow ? null : problem;
  };
}

/** Was each of these rows set aside before, just as it is, from an answer whose others could be read? */
async function areRepeated(sql: Sql, seriesId: number, rows: readonly OhlcvRowRead[]): Promise<boolean> {
  const asides = rows.map(({ openTime, row }) => ({ openTime, reason: '', row }));
  const repeated = await repeatedRows(sql, seriesId, asides);
  return asides.every(({ openTime }) => openTime !== null && repeated.has(openTime));
}

/** Rows of which not one can be read, or has a price field. */
function drifted(rows: readonly OhlcvRowRead[]): string | null {
  const [first] = rows;
  if (first?.ok === false && rows.every((r) => !r.ok)) return first.problem;
  return rows.some((r) => hasPrices(r.row)) ? null : 'no row has any of open, high, low, close';
}
