/** Checks the other records about the steps of a series: do revisions and requests agree with the evidence? */
import type { Instant } from '../../clock.ts';
import { INTERVAL_MS, type Interval } from '../../core/interval.ts';
import type { Spans } from '../../core/span.ts';
import { storedRows } from '../../store/candle/stored.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { ALL_TIME } from './findings.ts';

/** A record that contradicts the evidence. */
export type WrongRecord = {
  readonly text: string;
  readonly at: Spans;
  /** A step of the evidence; 0: the record names none. */
  readonly step: number;
};

/** `ops.uncover` writes its step after it has kept the values. It may work this long between the two. */
const LONGEST_MENDING = '1 hour';

/**
 * For some series of one interval: revisions that disagree with their step about the time, the reason, the as-of instant or the request. Of several
 * steps in one row of evidence, only the request and the as-of instant of the last one are known. The content of a slot after the step is known if
 * nothing took it out of coverage since.
 */
export async function wrongRevisions(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): Promise<Map<number, WrongRecord[]>> {
  const rows = await sql<{ seriesId: number; openTime: Instant; step: number | null }[]>`
    with taken as materialized (
      select series_id, number, slots from market.evidence where series_id = any(${ids as number[]}::int[]) and kind <> 'answer'
    ), told as (
      select r.series_id, r.open_time, r.seen_at, r.known_at, r.reason, r.fetch_id, r.was_empty, r.step, e.kind, e.detail, e.as_of,
        e.fetch_id as of_fetch, e.known_at + coalesce(e.step_seconds[r.step - e.number + 1], 0) * interval '1 second' as stored_at,
        r.step = e.number + coalesce(cardinality(e.step_seconds), 1) - 1 as is_last,
        before.known_at + coalesce(before.step_seconds[cardinality(before.step_seconds)], 0) * interval '1 second' as before,
        case
          when later.step is not null then later.was_empty
          when s.covered @> r.open_time then c.open_time is null
        end as is_empty_now,
        exists (select from taken m where m.series_id = r.series_id and m.number > r.step and m.slots @> r.open_time) as was_taken_out
      from market.revision r
      join market.series s on s.id = r.series_id
      cross join lateral (
        select * from market.evidence where series_id = r.series_id and number <= r.step order by number desc limit 1
      ) e
      left join lateral (
        select * from market.evidence where series_id = r.series_id and number < e.number order by number desc limit 1
      ) before on r.step = e.number
      left join lateral (
        select step, was_empty from market.revision
        where series_id = r.series_id and open_time = r.open_time and step > r.step order by step limit 1
      ) later on true
      left join lateral ${storedRows(sql, sql`s.id`, interval)} c on c.open_time = r.open_time
      where r.series_id = any(${ids as number[]}::int[]) and isfinite(r.open_time)
    ), compared as (
      -- Whoever stores a step also stores these. A comparison with null would count as right.
      select series_id, open_time, step, num_nulls(known_at, seen_at, reason) > 0 or case
        when kind = 'mended' and detail is distinct from 'contradicted by a later answer' then reason <> 'mended' or fetch_id is not null
          -- Compares instead of subtracting: two infinite instants have no difference.
          or stored_at <> coalesce(before, 'infinity')
            and not (stored_at between known_at - interval '1 second' and known_at + ${LONGEST_MENDING}::interval)
          or not (as_of between seen_at and seen_at + ${LONGEST_MENDING}::interval)
        when kind = 'mended' then reason <> 'contradicted' or fetch_id is distinct from of_fetch or seen_at <> as_of
        else reason not in ('late answer', 'removed by upstream')
          or reason = 'removed by upstream' and was_empty
          or not was_taken_out and (reason = 'removed by upstream') <> is_empty_now
          or is_last and (fetch_id is distinct from of_fetch or seen_at <> as_of)
      end
      -- A step is never older than the one before it, even after a clock was set back.
      or kind <> 'mended' and date_trunc('second', known_at) <> stored_at
        and not (date_trunc('second', known_at) < stored_at and stored_at = coalesce(before, stored_at)) as is_wrong
      from told
    )
    select series_id, open_time, step from compared where is_wrong
    union all
    -- A revision from before evidence was kept. Only a series whose evidence begins with adopted candles may have one.
    select r.series_id, r.open_time, null from market.revision r
    where r.series_id = any(${ids as number[]}::int[]) and r.step is null
      and exists (select from market.evidence e where e.series_id = r.series_id)
      and not exists (select from market.evidence e where e.series_id = r.series_id and e.kind = 'adopted')
    union all
    select series_id, open_time, step from market.revision where series_id = any(${ids as number[]}::int[]) and not isfinite(open_time)
    order by series_id, step, open_time`;
  const width = INTERVAL_MS[interval];
  return bySeries(rows, ({ openTime, step }) => {
    if (!Number.isFinite(openTime)) return { text: 'a revision has no time', at: [ALL_TIME], step: step ?? 0 };
    const from = Math.floor(openTime / width) * width;
    const text = step === null ? 'a revision names no step of the evidence' : `a revision contradicts step ${step}`;
    return { text, at: [{ from, to: from + width }], step: step ?? 0 };
  });
}

/**
 * For some series: repairs that found one slot to differ, although the very same candle was answered for it again. So that slot was right, and
 * another slot of the step differs: somebody has changed the sum (`locator`) that shows which one.
 */
export async function wrongRepairs(
  sql: SqlOrTransaction,
  interval: Interval,
  ids: readonly number[],
): Promise<Map<number, WrongRecord[]>> {
  // No number or time is read out of the text: what somebody wrote there may be neither.
  const rows = await sql<{ seriesId: number; step: number; told: number; slots: Spans }[]>`
    with blamed as materialized (
      select m.series_id, m.number as step, p.parts[1] as told, p.parts[2] as slot
      from market.evidence m
      cross join lateral regexp_matches(m.detail, 'step (\\d+) told [^;]*, the slot ([0-9: Z-]+) differs', 'g') p(parts)
      where m.series_id = any(${ids as number[]}::int[]) and m.kind = 'mended'
    )
    select b.series_id, b.step, e.number as told, e.slots - coalesce((select range_agg(g.slots) from market.evidence g
      where g.series_id = b.series_id and g.kind = 'mended' and g.number > e.number), '{}') as slots
    from blamed b
    join market.series s on s.id = b.series_id
    join market.evidence e on e.series_id = b.series_id and e.number::text = b.told
    join market.revision r on r.series_id = b.series_id and r.step = b.step and ops.say_time(r.open_time) = b.slot
    left join lateral (
      select * from market.revision where series_id = b.series_id and open_time = r.open_time and step > b.step order by step limit 1
    ) n on true
    left join lateral ${storedRows(sql, sql`b.series_id`, interval)} c on c.open_time = r.open_time and n.step is null and s.covered @> r.open_time
    where market.candle_hash(r.open_time, r.open, r.high, r.low, r.close, r.volume, r.market_cap)
      = case when n.step is not null and not n.was_empty then market.candle_hash(n.open_time, n.open, n.high, n.low, n.close, n.volume, n.market_cap)
          when c.open_time is not null then market.candle_hash(c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap) end
    order by 1, 2`;
  const wrong = rows.filter(({ slots }) => slots.length > 0);
  return bySeries(wrong, ({ step, told, slots }) => {
    const text = `step ${step} mended a slot that was right, so another slot differs from step ${told}`;
    return { text, at: slots, step };
  });
}

/**
 * For some series: answers whose request is missing, or another one. Retention removes requests in the order of their numbers. So if a request is
 * left that it would have removed, no later one is missing because of its age. Retention never removes the newest request.
 */
export async function wrongRequests(
  sql: SqlOrTransaction,
  ids: readonly number[],
): Promise<Map<number, WrongRecord[]>> {
  const rows = await sql<{ seriesId: number; step: number; slots: Spans; fetchId: number | null; isGone: boolean }[]>`
    select e.series_id, e.number as step, e.slots, e.fetch_id, f.id is null as is_gone
    from market.evidence e left join ops.fetch f on f.id = e.fetch_id
    where e.series_id = any(${ids as number[]}::int[]) and e.kind = 'answer'
      and (f.id is null or f.series_id <> e.series_id or f.body_sha256 is distinct from e.body_sha256 or f.as_of is distinct from e.as_of
        -- It asked for these slots; where several steps share the row, for those of the last.
        or not f.span @> case when cardinality(e.step_seconds) > 1 then tstzrange(upper(e.slots) - interval '1 microsecond', upper(e.slots))
          else range_merge(e.slots) end)
    order by 1, 2`;
  const isAnyGone = rows.some(({ fetchId, isGone }) => fetchId !== null && isGone);
  const since = isAnyGone ? await requestsKeptSince(sql) : 0;
  const wrong = rows.filter(({ fetchId, isGone }) => fetchId === null || !isGone || fetchId > since);
  return bySeries(wrong, ({ step, slots, fetchId, isGone }) => {
    const what = isGone ? 'is missing' : 'is not the one that the evidence refers to';
    const text = fetchId === null ? `step ${step} names no request` : `the request of step ${step} (ops.fetch) ${what}`;
    return { text, at: slots, step };
  });
}

async function requestsKeptSince(sql: SqlOrTransaction): Promise<number> {
  const [row] = await sql<{ since: number }[]>`
    select coalesce((
      select min(f.id) from ops.fetch f
      where f.series_id is not null and f.unconfirmed_slots is null
        and exists (select from ops.fetch y where y.id > f.id and y.account_id = f.account_id and y.status is not null and y.outcome = 'stored')
        and not exists (select from market.revision r where r.fetch_id = f.id)
        and not exists (select from market.quarantine q where q.fetch_id = f.id)
        and not exists (select from market.refusal r where r.fetch_id = f.id)
    ), (select max(id) from ops.fetch), 0) as since`;
  return row!.since;
}

/**
 * For some series: the steps of the repairs whose detail still matches the records of the series from before them. These records were not changed
 * since.
 */
export async function unchangedSince(
  sql: SqlOrTransaction,
  ids: readonly number[],
): Promise<Map<number, ReadonlySet<number>>> {
  const rows = await sql<{ seriesId: number; steps: number[] }[]>`
    select e.series_id, array_agg(e.number) as steps from market.evidence e
    where e.series_id = any(${ids as number[]}::int[]) and e.kind = 'mended' and e.detail ~ 'kept before: '
      and substring(e.detail from 'kept before: .*$') = ops.kept_before(e.series_id, e.number,
        case when e.detail !~ 'kept before: \\d+ rows of evidence' then e.slots end)
    group by 1`;
  return new Map(rows.map(({ seriesId, steps }) => [seriesId, new Set(steps)]));
}

function bySeries<T extends { readonly seriesId: number }>(
  rows: readonly T[],
  recordOf: (row: T) => WrongRecord,
): Map<number, WrongRecord[]> {
  const map = new Map<number, WrongRecord[]>();
  for (const row of rows) {
    const records = map.get(row.seriesId) ?? [];
    records.push(recordOf(row));
    map.set(row.seriesId, records);
  }
  return map;
}
