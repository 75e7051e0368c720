/**
 * Finds requests by their time in a table of any size. The numbers of requests rise with the time at which they were sent, except for some minutes.
 */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** A request is recorded when it has been answered, so its number may be this much later than those of its neighbours. */
export const DISORDER_MS = 15 * 60_000;

/** The lowest number from which on requests were sent at `at` or later. The binary search needs some twenty look-ups in the primary key. */
export async function firstRequestSince(sql: Sql, at: Instant): Promise<number> {
  const [found] = await sql<{ lo: number }[]>`
    with recursive search (lo, hi) as (
      select coalesce(min(id), 1), coalesce(max(id), 0) + 1 from ops.fetch
      union all
      select case when p.sent_at >= ${at} then s.lo else p.id + 1 end, case when p.sent_at >= ${at} then (s.lo + s.hi) / 2 else s.hi end
      from search s cross join lateral (
        select id, sent_at from ops.fetch where id >= (s.lo + s.hi) / 2 order by id limit 1
      ) p
      where s.lo < s.hi
    )
    select lo from search where lo >= hi limit 1`;
  return found?.lo ?? 1;
}
