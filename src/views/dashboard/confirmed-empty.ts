/**
 * Final slots without a candle that two answers reported empty (confirmed empty slots). Their number is arithmetic on `market.series`. Only the
 * candles or prices of a series show where they are: this reads the times of these rows, and nothing else.
 */
import { INTERVAL_MS, type Interval, isPriceInterval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** The number of slots in these spans. */
export function countSlots(sql: Sql, spans: ReturnType<Sql>, width: ReturnType<Sql>) {
  return sql`(select coalesce(sum(date_part('epoch', upper(r)) - date_part('epoch', lower(r))), 0) / ${width} from unnest(${spans}) r)`;
}

/** The number of such slots in the series `s`, as `market.coverage` counts them. */
export function confirmedEmptySlots(sql: Sql, width: ReturnType<Sql>) {
  // Parts of slots, from before there was a check, do not count.
  return sql`floor(${countSlots(sql, sql`s.covered`, width)} - s.covered_candles - ${countSlots(sql, sql`s.empty_once`, width)})`;
}

type StepWindow = {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly stepSeconds: number;
};

type SeriesToRead = { readonly seriesId: number; readonly interval: Interval; readonly slotsToRead: number };

/** Limit for one answer: some 100 ms of Postgres. */
const MOST_SLOTS = 150_000;

/**
 * The places of such slots, by series: the steps of the window that hold some of them, as the text of a multirange; null: none. A series that is
 * missing in the result was not read, because it would take too many slots. The middle rows are read first: a map requests more than it shows.
 */
export async function readConfirmedEmptyWithin(
  sql: Sql,
  rows: readonly SeriesToRead[],
  window: StepWindow,
): Promise<ReadonlyMap<number, string | null>> {
  const middle = (rows.length - 1) / 2;
  const byInterval = new Map<Interval, number[]>();
  let left = MOST_SLOTS;
  const places = rows.map((_, place) => place).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  for (const place of places) {
    const { seriesId, interval, slotsToRead } = rows[place]!;
    if (slotsToRead === 0 || slotsToRead > left) continue;
    left -= slotsToRead;
    byInterval.set(interval, [...(byInterval.get(interval) ?? []), seriesId]);
  }
  const found = new Map<number, string | null>();
  // One after the other, because pages share few connections.
  for (const [interval, ids] of byInterval)
    for (const { id, steps } of await readConfirmedEmpty(sql, interval, ids, window)) found.set(id, steps);
  return found;
}

/** Reads series of one interval. */
async function readConfirmedEmpty(
  sql: Sql,
  interval: Interval,
  ids: readonly number[],
  { fromSeconds, toSeconds, stepSeconds }: StepWindow,
): Promise<readonly { readonly id: number; readonly steps: string | null }[]> {
  const wide = INTERVAL_MS[interval] / 1000;
  const at = (seconds: number) => sql`to_timestamp(${seconds}::float8)`;
  // Whole slots, because the candle of a slot that the window cuts may open before the window.
  const [from, to] = [at(Math.floor(fromSeconds / wide) * wide), at(Math.ceil(toSeconds / wide) * wide)];
  // The interval is a literal, so that the plan has only the partitions of this interval.
  const times = isPriceInterval(interval)
    ? sql`select time as at from market.price where series_id = s.id and time >= ${from} and time < ${to} and time >= s.first and time < s.last`
    : sql`select open_time as at from market.candle where series_id = s.id and interval = ${sql.unsafe(`'${interval}'`)}
        and open_time >= ${from} and open_time < ${to} and open_time >= s.first and open_time < s.last`;
  return sql<{ id: number; steps: string | null }[]>`
    with known as materialized (
      select s.id, k.spans, lower(k.spans) as first, upper(k.spans) as last, ${wide}::float8 * interval '1 second' as width
      from market.series s,
        lateral (select s.covered * tstzmultirange(tstzrange(${from}, ${to})) - s.empty_once as spans offset 0) k
      where s.id = any(${ids as number[]}::int[]) and not isempty(k.spans)
    )
    select s.id, (
      select range_agg(int4range(
        floor((date_part('epoch', greatest(lower(r), ${at(fromSeconds)})) - ${fromSeconds}::float8) / ${stepSeconds}::float8)::int,
        ceil((date_part('epoch', least(upper(r), ${at(toSeconds)})) - ${fromSeconds}::float8) / ${stepSeconds}::float8)::int))::text
      from unnest(s.spans * (
        select range_agg(tstzrange(g.before + s.width, g.at)) from (
          select at, lag(at, 1, s.first - s.width) over (order by at) as before from (${times}) t
          union all
          select s.last, coalesce((select max(at) from (${times}) t), s.first - s.width)
        ) g where g.at > g.before + s.width
      )) r) as steps
    from known s`;
}
