/** Reads a page of series for verify, all in one snapshot: the series, their evidence, sums of their candles, their revisions. */

import type { Instant } from '../../clock.ts';
import { INTERVAL_MS, type Interval, type SeriesName } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import { CANDLE_VALUES } from '../../store/candle/coarse-candle.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { isInYears } from './impossible-times.ts';
import { modulo } from './modulo.ts';
import type { EvidenceRow } from './steps.ts';
import { refuseNulls } from './unreadable.ts';

export type SeriesRow = SeriesName & {
  readonly id: number;
  readonly wanted: Spans;
  readonly covered: Spans;
  readonly coveredCandles: number;
  readonly candles: number;
  /** Unsigned, modulo 2^64. */
  readonly digest: bigint;
  readonly emptyOnce: Spans;
  readonly steps: number;
  readonly link: string | null;
  /** The link before the first step, if the steps of changed ids are right. */
  readonly firstLink: string;
  /** Slots within which coverage, or `emptyOnce`, begins or ends. */
  readonly offGrid: Spans;
};

export type Evidence = EvidenceRow & { readonly seriesId: number };

/** The SQL condition that each bound is that of a slot, including its microseconds: values here have only milliseconds. `(a,b]` fails, too. */
const onGrid = (multirange: string, width: string) => `not exists (select from unnest(${multirange}) r
  where mod(extract(epoch from lower(r)), ${width}) <> 0 or mod(extract(epoch from upper(r)), ${width}) <> 0
    or not (lower_inc(r) or lower_inf(r)) or upper_inc(r))`;

type Text<T, Name extends keyof T> = Omit<T, Name> & { readonly [name in Name]: string };

export async function readSeries(sql: SqlOrTransaction, ids: readonly number[]): Promise<SeriesRow[]> {
  const rows = await sql<Text<SeriesRow, 'digest'>[]>`
    select s.id, s.coin_id, s.quote, s.interval, s.wanted, s.covered, s.covered_candles, s.candles, s.digest::text, s.empty_once, s.steps,
      encode(s.link, 'hex') as link,
      encode(ops.first_link(coalesce((select split_part(e.detail, ' ', 1) from market.evidence e
        where e.series_id = s.id and e.kind = 'renamed' order by e.number limit 1), s.coin_id), s.quote, s.interval), 'hex') as first_link,
      (
        select coalesce(range_agg(slot), '{}')
        from (select unnest(s.covered) union all select unnest(s.empty_once)) spans(r)
        cross join lateral (values (lower(r), not (lower_inc(r) or lower_inf(r))), (upper(r), upper_inc(r))) bound(at, is_odd)
        cross join lateral unnest(ops.whole_slots(tstzmultirange(tstzrange(at, at, '[]')), ops.seconds_of(s.interval))) slot
        -- For other times, the end of the slot may be beyond what Postgres can store.
        where ${sql.unsafe(isInYears('at'))} and (is_odd or mod(extract(epoch from at), ops.seconds_of(s.interval)::numeric) <> 0)
      ) as off_grid
    from unnest(${ids as number[]}::int[]) with ordinality as page(id, position)
    join market.series s on s.id = page.id order by page.position`;
  refuseNulls('market.series', rows, ['wanted', 'covered', 'digest', 'emptyOnce']);
  return rows.map((row) => ({ ...row, digest: modulo(BigInt(row.digest)) }));
}

/** The rows of each series, in the order of their numbers. */
export async function readEvidence(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): Promise<Map<number, Evidence[]>> {
  const width = `${INTERVAL_MS[interval] / 1000}`;
  const rows = await sql<Text<Evidence, 'digest' | 'locator'>[]>`
    select e.series_id, e.number, e.kind, e.slots, e.known_at, e.candles, e.digest::text, e.locator::text,
      encode(e.link, 'hex') as link, e.step_seconds, e.step_slots, e.detail,
      case when coalesce(cardinality(e.step_seconds), 1) = 1 then e.link = ops.evidence_link(
        coalesce(lag(e.link) over w, ops.first_link(coalesce(first_value(case when e.kind = 'renamed' then split_part(e.detail, ' ', 1) end) over renames, s.coin_id), s.quote, s.interval)),
        e.kind, e.detail, e.known_at, e.slots, e.candles, e.digest) end as is_linked,
      ${sql.unsafe(onGrid('e.slots', width))} and e.known_at = date_trunc('second', e.known_at) as is_on_grid
    from market.evidence e join market.series s on s.id = e.series_id
    where e.series_id = any(${ids as number[]}::int[])
    window w as (partition by e.series_id order by e.number),
      renames as (partition by e.series_id order by e.kind = 'renamed' desc, e.number)
    order by e.series_id, e.number`;
  refuseNulls('market.evidence', rows, ['kind', 'slots', 'digest', 'locator']);
  const bySeries = new Map<number, Evidence[]>(ids.map((id) => [id, []]));
  for (const row of rows) {
    bySeries
      .get(row.seriesId)!
      .push({ ...row, digest: modulo(BigInt(row.digest)), locator: modulo(BigInt(row.locator)) });
  }
  return bySeries;
}

/** The sums of the stored candles in a segment. */
export type Bucket = {
  readonly id: number;
  /** The index of the segment. */
  readonly bucket: number;
  readonly candles: number;
  readonly digest: string;
  readonly locator: string;
  /** Number of candles that are off the grid, impossible, or from the future. */
  readonly odd: number;
  readonly first: Instant;
  readonly last: Instant;
};

/** The SQL condition for a candle that validation would have quarantined. Null is valid, because a comparison with it is not true. */
const IMPOSSIBLE = `not (c.high >= c.low and c.high >= c.open and c.high >= c.close and c.low <= c.open and c.low <= c.close
  and ${CANDLE_VALUES.map((name) => `c.${name} >= 0 and c.${name} < 'infinity'`).join(' and ')})`;

/**
 * Reads the stored candles of some series of one interval once. `bounds`: where the segments of each series begin, ascending. Floating point is
 * exact here: an open time in seconds is far below 2^53, and one that is off the grid by a microsecond divides to no integer. Candles at impossible
 * times are left out (impossible-times.ts).
 */
export function sumCandles(
  sql: SqlOrTransaction,
  interval: Interval,
  of: readonly { readonly id: number; readonly bounds: readonly Instant[] }[],
  latest: Instant,
): Promise<Bucket[]> {
  const width = INTERVAL_MS[interval] / 1000;
  return sql<Bucket[]>`
    select page.id, sums.* from (
      select id, bounds::float8[] as bounds from unnest(${of.map(({ id }) => id)}::int[],
        ${of.map(({ bounds }) => `{${bounds.map((at) => at / 1000).join(',')}}`)}::text[]) as p(id, bounds) offset 0
    ) page
    cross join lateral (
      select bucket, count(*)::int as candles, sum(h)::text as digest,
        sum((h & 4294967295) * place::bigint)::text as locator,
        count(*) filter (where place <> trunc(place) or is_impossible or open_time > ${latest})::int as odd, min(open_time) as first, max(open_time) as last
      from (
        select c.open_time, width_bucket(date_part('epoch', c.open_time), page.bounds) as bucket,
          date_part('epoch', c.open_time) / ${width}::float8 as place,
          market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap) as h,
          ${sql.unsafe(IMPOSSIBLE)} as is_impossible
        from ${storedRows(sql, sql`page.id`, interval)} c
        where ${sql.unsafe(isInYears('c.open_time'))}
        -- Without this, Postgres would compute the hash twice.
        offset 0
      ) candle
      group by bucket
    ) sums
    order by page.id, bucket`;
}

/** Open times of stored candles that cannot be right, ascending. */
export type OddCandles = {
  readonly offGrid: readonly Instant[];
  readonly impossible: readonly Instant[];
  readonly future: readonly Instant[];
};

export const NONE_ODD: OddCandles = { offGrid: [], impossible: [], future: [] };

export async function readOddCandles(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
  latest: Instant,
): Promise<Map<number, OddCandles>> {
  const rows = await sql<(OddCandles & { seriesId: number })[]>`
    select series_id, coalesce(array_agg(open_time order by open_time) filter (where is_off_grid), '{}') as off_grid,
      coalesce(array_agg(open_time order by open_time) filter (where is_impossible), '{}') as impossible,
      coalesce(array_agg(open_time order by open_time) filter (where open_time > ${latest}), '{}') as future
    from (
      select page.id as series_id, c.open_time, mod(extract(epoch from c.open_time), ${INTERVAL_MS[interval] / 1000}::int) <> 0 as is_off_grid,
        ${sql.unsafe(IMPOSSIBLE)} as is_impossible
      from unnest(${ids as number[]}::int[]) page (id) cross join lateral ${storedRows(sql, sql`page.id`, interval)} c
      where ${sql.unsafe(isInYears('c.open_time'))}
    ) c
    where is_off_grid or is_impossible or open_time > ${latest}
    group by 1`;
  return new Map(rows.map((row) => [row.seriesId, row]));
}

/** A final value that was replaced. */
export type Revision = {
  readonly seriesId: number;
  readonly openTime: Instant;
  readonly isOnGrid: boolean;
  /** Null: from before evidence was kept. */
  readonly step: number | null;
  /** Whether there was a candle. If not, its numbers must be null. */
  readonly wasThere: boolean;
  readonly isContradictory: boolean;
  readonly hash: bigint;
};

const REVISIONS_AT_ONCE = 5_000;

/** Reads page by page, so that memory does not grow with the number of revisions. */
export async function* readRevisions(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): AsyncGenerator<Revision> {
  const pages = sql<Text<Revision, 'hash'>[]>`
    select r.series_id, r.open_time, r.step,
      mod(extract(epoch from r.open_time), ${INTERVAL_MS[interval] / 1000}::int) = 0 as is_on_grid,
      not r.was_empty as was_there,
      r.was_empty and num_nonnulls(r.open, r.high, r.low, r.close, r.volume, r.market_cap) > 0 as is_contradictory,
      market.candle_hash(r.open_time, r.open, r.high, r.low, r.close, r.volume, r.market_cap)::text as hash
    from market.revision r where r.series_id = any(${ids as number[]}::int[]) and isfinite(r.open_time)
    order by r.series_id, r.open_time, r.step`.cursor(REVISIONS_AT_ONCE);
  for await (const page of pages) for (const row of page) yield { ...row, hash: BigInt(row.hash) };
}
