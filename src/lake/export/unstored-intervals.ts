/** Requested intervals of candles of which no series is stored. Candles that the warehouse builds from narrower ones are in no export. */
import { type CandleInterval, INTERVAL_MS, INTERVALS, isCandleInterval } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Selection } from './selection.ts';

export type UnstoredInterval = {
  readonly interval: CandleInterval;
  /** The widest stored interval from which the warehouse builds such candles; null: there is none. */
  readonly madeOf: CandleInterval | null;
};

export async function unstoredIntervals(
  sql: SqlOrTransaction,
  { datasets, coinIds, intervals }: Pick<Selection, 'datasets' | 'coinIds' | 'intervals'>,
): Promise<UnstoredInterval[]> {
  if (!datasets.some(({ name }) => name === 'candles')) return [];
  const asked = (intervals ?? []).filter(isCandleInterval);
  if (asked.length === 0) return [];
  const rows = await sql<{ interval: string }[]>`
    select distinct interval::text from market.series where candles > 0
      ${coinIds === null ? sql`` : sql`and coin_id = any(${coinIds as string[]}::text[])`}`;
  const stored = INTERVALS.filter((one) => rows.some(({ interval }) => interval === one));
  const isMadeOf = (wide: CandleInterval, narrow: CandleInterval) =>
    INTERVAL_MS[narrow] < INTERVAL_MS[wide] && INTERVAL_MS[wide] % INTERVAL_MS[narrow] === 0;
  return asked
    .filter((interval) => !stored.includes(interval))
    .map((interval) => ({ interval, madeOf: stored.findLast((one) => isMadeOf(interval, one)) ?? null }));
}
