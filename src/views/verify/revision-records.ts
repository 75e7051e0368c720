/** Do the revisions say of their steps what the evidence says: when, why, as of when, by which request? */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** `ops.uncover` writes its step after it has kept the values; it may work for long between the two. */
const LONGEST_MENDING = '1 hour';

/**
 * One sentence for each series. Of several steps in one row of evidence, the request and the as-of instant of the last one are known. What a slot
 * held after the step is known where nothing took it out of coverage since.
 */
export async function wrongRevisions(sql: Sql): Promise<string[]> {
  const rows = await sql<{ seriesId: number; wrong: number; first: Instant }[]>`
    with told as (
      select r.series_id, r.open_time, r.seen_at, r.known_at, r.reason, r.fetch_id, r.was_empty, e.kind, e.detail, e.as_of,
        e.fetch_id as of_fetch, e.known_at + coalesce(e.step_seconds[r.step - e.number + 1], 0) * interval '1 second' as stored_at,
        r.step = e.number + coalesce(cardinality(e.step_seconds), 1) - 1 as is_last,
        before.known_at + coalesce(before.step_seconds[cardinality(before.step_seconds)], 0) * interval '1 second' as before,
        case
          when later.step is not null then later.was_empty
          when s.covered @> r.open_time then c.series_id is null
        end as is_empty_now,
        exists (select from market.evidence m where m.series_id = r.series_id and m.number > r.step and m.kind <> 'answer'
          and m.slots @> r.open_time) as was_taken_out
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
      left join market.candle c on c.series_id = s.id and c.interval = s.interval and c.open_time = r.open_time
    ), compared as (
      select series_id, open_time, case
        when kind = 'mended' and detail is distinct from 'contradicted by a later answer' then reason <> 'mended' or fetch_id is not null
          or stored_at <> coalesce(before, 'infinity') and not (stored_at - known_at between interval '-1 second' and ${LONGEST_MENDING}::interval)
          or not (as_of - seen_at between interval '0' and ${LONGEST_MENDING}::interval)
        when kind = 'mended' then reason <> 'contradicted' or fetch_id is distinct from of_fetch or seen_at <> as_of
        else reason not in ('late answer', 'removed by upstream')
          or reason = 'removed by upstream' and was_empty
          or not was_taken_out and (reason = 'removed by upstream') <> is_empty_now
          or is_last and (fetch_id is distinct from of_fetch or seen_at <> as_of)
      end
      -- A step is never older than the one before it, whatever the clocks say.
      or kind <> 'mended' and date_trunc('second', known_at) <> stored_at
        and not (date_trunc('second', known_at) < stored_at and stored_at = coalesce(before, stored_at)) as is_wrong
      from told
    )
    select series_id, count(*)::int as wrong, min(open_time) as first from compared where is_wrong group by 1 order by 1`;
  return rows.map(
    ({ seriesId, wrong, first }) =>
      `market.revision: series ${seriesId} has ${formatCounted(wrong, 'revision')} unlike the step of evidence, first of ${formatInstant(first)}`,
  );
}
