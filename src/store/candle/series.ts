/** Reads and writes `market.series`. For a tracked series it also records up to when an answer reached (`ops.tracked.seen_until`). */
import type { Instant } from '../../clock.ts';
import type { Interval, SeriesSpan } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import { type SqlOrTransaction, withFreshPlans } from '../connection/connect.ts';

/** Series to want, of coins in the catalogue. An open-ended span (`to: Infinity`) makes views show the series as tracked. */
export type WantedSeries = SeriesSpan & {
  /** A higher priority is requested first. A series keeps the highest that it was ever given. */
  readonly priority: number;
};

/**
 * Adds `span` to what is wanted of each of these series, and creates missing series. Resolves to their ids in the order of `coinIds`.
 * @throws PostgresError 23503 when the catalogue does not hold a coin
 */
export function wantSeries(sql: SqlOrTransaction, asked: WantedSeries): Promise<number[]> {
  return withFreshPlans(sql, (tx) => addWanted(tx, asked));
}

async function addWanted(sql: SqlOrTransaction, asked: WantedSeries): Promise<number[]> {
  const { quote, interval, priority } = asked;
  const coinIds = asked.coinIds as string[];
  const wanted: Spans = [asked.span];
  // Missing series first: the update then sees what another caller commits in between. Only missing ones are inserted, because
  // each conflict would use up a number of the identity. Both statements go in order of coin, so that two callers at once never
  // deadlock. No statement joins anything: if autovacuum has counted the series before their insert was committed, Postgres expects
  // one row, and a nested loop over 50,000 on either side takes minutes.
  await sql`
    insert into market.series (coin_id, quote, interval, wanted, priority)
    select id, ${quote}, ${interval}::market.candle_interval, ${wanted}::tstzmultirange, ${priority}::smallint
    from (
      select unnest(${coinIds}::text[]) as id
      except
      select coin_id from market.series
      where coin_id = any(${coinIds}::text[]) and quote = ${quote} and interval = ${interval}::market.candle_interval
    ) missing
    order by id
    on conflict (coin_id, quote, interval) do nothing`;
  await sql`
    update market.series
    set wanted = wanted + ${wanted}::tstzmultirange, priority = greatest(priority, ${priority}::smallint)
    where id = any(array(
      select id from market.series
      where coin_id = any(${coinIds}::text[]) and quote = ${quote} and interval = ${interval}::market.candle_interval
        and (not wanted @> ${wanted}::tstzmultirange or priority < ${priority})
      order by coin_id for update
    ))`;
  const rows = await sql<{ id: number; coinId: string }[]>`
    select id, coin_id from market.series
    where coin_id = any(${coinIds}::text[]) and quote = ${quote} and interval = ${interval}::market.candle_interval`;
  const ids = new Map(rows.map(({ id, coinId }) => [coinId, id]));
  return coinIds.map((coinId) => ids.get(coinId)!);
}

/** Records that an answer reached the newest end of a series: upstream has given all it has up to `until`. Does nothing for an untracked series. */
export async function markSeen(sql: SqlOrTransaction, seriesId: number, until: Instant): Promise<void> {
  await sql`
    update ops.tracked set seen_until = ${until}
    where series_id = ${seriesId} and (seen_until is null or seen_until < ${until})`;
}

/**
 * Cuts series into pages, in their order. A page has series of one interval, so that Postgres prunes partitions, and at most `most.series`
 * series and `most.rows` rows, as `rowsOf` counts them. A series with more rows is a page of its own.
 */
export async function* pagesOf<S extends { readonly interval: Interval }>(
  all: Iterable<S> | AsyncIterable<S>,
  most: { readonly series: number; readonly rows: number },
  rowsOf: (one: S) => number,
): AsyncGenerator<S[]> {
  let page: S[] = [];
  let rows = 0;
  for await (const one of all) {
    const more = rowsOf(one);
    const isFull = page.length >= most.series || rows + more > most.rows;
    if (page.length > 0 && (isFull || page[0]!.interval !== one.interval)) {
      yield page;
      page = [];
      rows = 0;
    }
    page.push(one);
    rows += more;
  }
  if (page.length > 0) yield page;
}
