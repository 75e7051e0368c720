/** Tells rows that are bad from an interface that has changed: of the latter nothing is kept, and what was asked is asked again. */
import type { OhlcvRowRead } from '../contract/ohlcv.ts';
import { INTERVAL_MS, type Interval } from '../core/interval.ts';
import { normalize, type Span, subtract } from '../core/span.ts';
import type { Sql } from '../store/connect.ts';
import { malformedSpans } from '../store/pending.ts';

/** What is wrong with an answer as a whole; null: nothing, or its rows by themselves. */
export type DriftCheck = (
  series: { readonly id: number; readonly interval: Interval },
  span: Span,
  rows: readonly OhlcvRowRead[],
) => Promise<string | null>;

export function createDriftCheck(sql: Sql): DriftCheck {
  /** Since the last answer of which no row could be read, one could. */
  let oneWasReadable = false;
  return async ({ id, interval }, span, rows) => {
    if (rows.length === 0) return null;
    const problem = drifted(rows);
    if (problem === null) {
      oneWasReadable = true;
      return null;
    }
    // One row alone is no witness against the interface: another answer is, or one that was read when this row was bad already.
    const isRow = (rows.length === 1 && oneWasReadable) || (await areKnown(sql, { id, interval }, span, rows));
    oneWasReadable = false;
    return isRow ? null : problem;
  };
}

/** Was each of these rows set aside before, from an answer whose others could be read? */
async function areKnown(
  sql: Sql,
  { id, interval }: { readonly id: number; readonly interval: Interval },
  span: Span,
  rows: readonly OhlcvRowRead[],
): Promise<boolean> {
  const times = rows.flatMap(({ openTime }) => (openTime === null ? [] : [openTime]));
  if (times.length < rows.length) return false;
  const slots = normalize(times.map((at) => ({ from: at, to: at + INTERVAL_MS[interval] })));
  return subtract(slots, await malformedSpans(sql, id, span)).length === 0;
}

/** Rows of which not one has a price field are no candles with unknown prices. */
function drifted(rows: readonly OhlcvRowRead[]): string | null {
  const [first] = rows;
  if (first?.ok === false && rows.every((r) => !r.ok)) return first.problem;
  const hasPrices = (row: unknown) =>
    typeof row === 'object' && row !== null && ('open' in row || 'high' in row || 'low' in row || 'close' in row);
  return rows.some((r) => hasPrices(r.row)) ? null : 'no row has any of open, high, low, close';
}
