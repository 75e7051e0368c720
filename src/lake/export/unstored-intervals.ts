/** Requested intervals of which no series is stored. Candles that the warehouse builds from narrower ones are in no export. */
import {
  type CandleInterval,
  INTERVAL_MS,
  INTERVALS,
  type Interval,
  isCandleInterval,
  isPriceInterval,
} from '../../core/interval.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Selection } from './selection.ts';

export type UnstoredInterval = {
  readonly interval: Interval;
  /** The widest stored interval from which the warehouse builds such candles; null: there is none. */
  readonly madeOf: CandleInterval | null;
};

export async function unstoredIntervals(
  sql: SqlOrTransaction,
  { datasets, coinIds, intervals }: Pick<Selection, 'datasets' | 'coinIds' | 'intervals'>,
): Promise<UnstoredInterval[]> {
  const has = (dataset: string) => datasets.some(({ name }) => name === dataset);
  const candles = has('candles') ? (intervals ?? []).filter(isCandleInterval) : [];
  // A width of candles and of prices is reported only as missing candles: most users who name it want candles.
  const prices = has('prices') ? (intervals ?? []).filter(isPriceInterval) : [];
  const asked = [...candles, ...prices.filter((one) => !candles.some((c) => INTERVAL_MS[c] === INTERVAL_MS[one]))];
  if (asked.length === 0) return [];
  const rows = await sql<{ interval: Interval }[]>`
    select distinct interval::text from market.series where candles > 0
      ${coinIds === null ? sql`` : sql`and coin_id = any(${coinIds as string[]}::text[])`}`;
  const stored = new Set(rows.map(({ interval }) => interval));
  return asked
    .filter((interval) => !stored.has(interval))
    .map((interval) => ({ interval, madeOf: isCandleInterval(interval) ? widestPartOf(interval, stored) : null }));
}

function widestPartOf(wide: CandleInterval, stored: ReadonlySet<Interval>): CandleInterval | null {
  const isPart = (one: CandleInterval) =>
    INTERVAL_MS[one] < INTERVAL_MS[wide] && INTERVAL_MS[wide] % INTERVAL_MS[one] === 0;
  return INTERVALS.findLast((one) => stored.has(one) && isPart(one)) ?? null;
}
