/** Detects schema drift. When the upstream's format has changed, nothing of an answer is stored, and the request is sent again later. */
import { hasPrices, type OhlcvRowRead } from '../../contract/record/ohlcv.ts';
import { hasPrice } from '../../contract/record/price.ts';
import { type Interval, isPriceInterval } from '../../core/interval.ts';
import { repeatedRows } from '../../store/candle/quarantine.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';

/** Returns what is wrong with the whole answer; null: nothing, or only single rows. */
type DriftCheck = (
  series: Pick<ChunkJob, 'seriesId' | 'interval'>,
  rows: readonly OhlcvRowRead[],
) => Promise<string | null>;

export function createDriftCheck(sql: Sql): DriftCheck {
  /** True when an answer had a readable row after the last answer without one. */
  let oneWasReadable = false;
  return async ({ seriesId, interval }, rows) => {
    if (rows.length === 0) return null;
    const problem = drifted(interval, rows);
    if (problem === null) {
      oneWasReadable = true;
      return null;
    }
    // One invalid row proves no drift if another answer was readable just before. Rows that were invalid in the same way before prove none either.
    const isRow = (rows.length === 1 && oneWasReadable) || (await areRepeated(sql, seriesId, rows));
    oneWasReadable = false;
    return isRow ? null : problem;
  };
}

/** Was each of these exact rows quarantined before, from an answer with other readable rows? */
async function areRepeated(sql: Sql, seriesId: number, rows: readonly OhlcvRowRead[]): Promise<boolean> {
  const asides = rows.map(({ openTime, row }) => ({ openTime, reason: '', row }));
  const repeated = await repeatedRows(sql, seriesId, asides);
  return asides.every(({ openTime }) => openTime !== null && repeated.has(openTime));
}

/** The problem, if no row can be read or no row has a price field. */
function drifted(interval: Interval, rows: readonly OhlcvRowRead[]): string | null {
  const [first] = rows;
  if (first?.ok === false && rows.every((r) => !r.ok)) return first.problem;
  if (isPriceInterval(interval)) return rows.some((r) => hasPrice(r.row)) ? null : 'no row has a price';
  return rows.some((r) => hasPrices(r.row)) ? null : 'no row has any of open, high, low, close';
}
