/** Compares imported series with the records of their imports: count, first and last open time, and the digest of their candles. */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import type { CandleInterval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

type Recount = {
  readonly source: string;
  readonly coinId: string;
  readonly quote: string;
  readonly interval: CandleInterval;
  readonly candles: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
  readonly foundCandles: number;
  readonly foundFirst: Instant | null;
  readonly foundLast: Instant | null;
  readonly isDigestEqual: boolean;
};

/** The numbers that the imports have recorded. */
export async function countImported(sql: Sql): Promise<{ readonly series: number; readonly candles: number }> {
  const [row] = await sql<{ series: number; candles: number }[]>`
    select count(*) as series, coalesce(sum(candles), 0)::bigint as candles from market.imported_series`;
  return row!;
}

/** Number of series in one statement. */
const MOST_SERIES = 200;

/** All differences, one sentence each. Reads and hashes every imported candle. */
export async function wrongImports(sql: Sql): Promise<string[]> {
  const found: string[] = [];
  for (let after = 0; ; ) {
    const page = await sql<{ id: number }[]>`
      select id from market.imported_series where id > ${after} order by id limit ${MOST_SERIES}`;
    if (page.length === 0) break;
    after = page.at(-1)!.id;
    for (const recount of await recountSeries(
      sql,
      page.map(({ id }) => id),
    ))
      found.push(...differencesOf(recount));
  }
  const strangers = await sql<{ seriesId: number; rows: number }[]>`
    select series_id, count(*) as rows from market.imported_candle c
    where not exists (select from market.imported_series s where s.id = c.series_id) group by 1 order by 1`;
  return [
    ...found,
    ...strangers.map(
      ({ seriesId, rows }) => `market.imported_candle: ${rows} rows of series ${seriesId}, which does not exist`,
    ),
  ];
}

async function recountSeries(sql: Sql, ids: readonly number[]): Promise<readonly Recount[]> {
  return sql<Recount[]>`
    select s.source, s.coin_id, s.quote, s.interval, s.candles, s.first_open_time as first, s.last_open_time as last,
      c.candles as found_candles, c.first as found_first, c.last as found_last,
      mod(c.digest - s.digest, 18446744073709551616) = 0 as is_digest_equal
    from market.imported_series s cross join lateral (
      select count(*) as candles, min(open_time) as first, max(open_time) as last,
        -- A candle without a time has no hash, and must still be found.
        coalesce(sum(case when isfinite(open_time)
          then market.candle_hash(open_time, open, high, low, close, volume, market_cap)::numeric else 1 end), 0) as digest
      from market.imported_candle where series_id = s.id
    ) c
    where s.id = any(${ids as number[]}::int[]) order by s.source collate "C", s.coin_id collate "C", s.quote, s.interval`;
}

function differencesOf(series: Recount): string[] {
  const { source, coinId, quote, interval, candles, first, last, foundCandles, foundFirst, foundLast } = series;
  const name = `market.imported_series: ${coinId} ${interval} ${quote} of source ${source}`;
  const at = (instant: Instant | null) =>
    instant === null ? 'nowhere' : `at ${Number.isFinite(instant) ? formatInstant(instant) : 'no time'}`;
  const out: string[] = [];
  if (foundCandles !== candles)
    out.push(`${name} has ${formatCounted(foundCandles, 'candle')}, but ${candles} were imported`);
  if (foundFirst !== first) out.push(`${name} begins ${at(foundFirst)}, but the imported candles began ${at(first)}`);
  if (foundLast !== last) out.push(`${name} ends ${at(foundLast)}, but the imported candles ended ${at(last)}`);
  // One sentence is enough when rows are missing.
  if (out.length === 0 && !series.isDigestEqual)
    out.push(`${name} has other candles than the import: their digest differs`);
  return out;
}
