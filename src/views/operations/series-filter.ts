/** Filters series by coin, quote and interval; an absent field does not filter. */
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';

export type SeriesFilter = {
  readonly coinIds?: readonly string[] | undefined;
  readonly quote?: Quote | undefined;
  readonly interval?: Interval | undefined;
};

/** A condition on the columns `coin_id`, `quote` and `interval`. */
export function matching(sql: SqlOrTransaction, { coinIds, quote, interval }: SeriesFilter) {
  return sql`true
    ${coinIds === undefined ? sql`` : sql`and coin_id = any(${coinIds as string[]}::text[])`}
    ${quote === undefined ? sql`` : sql`and quote = ${quote}`}
    ${interval === undefined ? sql`` : sql`and interval = ${interval}::market.candle_interval`}`;
}

/** The ids of `coinIds` without any series that matches: misspelt, or never requested. */
export async function coinsWithoutSeries(
  sql: SqlOrTransaction,
  coinIds: readonly string[],
  narrow: Omit<SeriesFilter, 'coinIds'> = {},
): Promise<string[]> {
  const rows = await sql<{ coinId: string }[]>`
    select coin_id from unnest(${coinIds as string[]}::text[]) as given(coin_id)
    where not exists (select from market.series s where s.coin_id = given.coin_id and ${matching(sql, narrow)})`;
  return rows.map((row) => row.coinId);
}

/** The ids among which the correction of a misspelt id is searched for. */
export async function coinIdsWithSeries(sql: SqlOrTransaction): Promise<string[]> {
  const rows = await sql<{ coinId: string }[]>`select distinct coin_id from market.series`;
  return rows.map((row) => row.coinId);
}

/** With more series, counts that read each of them are not made while somebody waits. */
export const MANY_SERIES = 20_000;

/** Whether more series match the filter than can be counted at once. Reads no more rows than necessary. */
export async function hasManySeries(sql: SqlOrTransaction, filter: SeriesFilter = {}): Promise<boolean> {
  const rows = await sql`select from market.series where ${matching(sql, filter)} offset ${MANY_SERIES} limit 1`;
  return rows.length > 0;
}

/** How many series match the filter. */
export async function countSeries(sql: SqlOrTransaction, filter: SeriesFilter): Promise<number> {
  const [row] = await sql<
    { series: number }[]
  >`select count(*) as series from market.series where ${matching(sql, filter)}`;
  return row!.series;
}
