/** What is broken now, and since when: the oldest problem is often the cause of the others. */
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { leaseIsAlive } from '../../store/work/lease.ts';
import type { HeldLock } from './blocking-sessions.ts';

export type Problem = {
  readonly since: Instant;
  /** `requests for tickers`, `schedule global`, `backfill 3`, `service host:1`, `key`, `lock`. */
  readonly what: string;
  readonly times: number;
  readonly message: string | null;
};

/** Older requests are not read. */
const MOST_REQUESTS = 20_000;
/** A backfill that failed longer ago is not reported. */
const RECENT_MS = DAY;

/**
 * Oldest first. A refused key is not among them: `standingRefusal` decides whether it counts. `now`: by the clock with which leases are renewed.
 * `lock`: a process that waits for it may not renew its lease until the lock is released.
 */
export async function readProblems(
  sql: Sql,
  { now, lock }: { readonly now: Instant; readonly lock: HeldLock | null },
): Promise<Problem[]> {
  const perhaps = lock === null ? '' : '; it may wait for the lock';
  const found = await sql<Problem[]>`
    with recent as (
      select id, endpoint, sent_at, message, outcome not in ('unavailable', 'limited', 'malformed') as is_answered from ops.fetch
      where id > (select max(id) from ops.fetch) - ${MOST_REQUESTS} and sent_at > ${now - RECENT_MS}
    ), answered as (
      select endpoint, max(id) as id from recent where is_answered group by endpoint
    ), run as (
      select schedule, min(begun_at) as since, count(*) as times, (array_agg(message order by id desc))[1] as message
      from ops.schedule_run r
      where state in ('failed', 'waiting') and id > coalesce(
        (select max(d.id) from ops.schedule_run d where d.schedule = r.schedule and d.state = 'done'), 0)
      group by schedule
    )
    select * from (
      select min(r.sent_at) as since, 'requests for ' || r.endpoint as what, count(*) as times,
        (array_agg(r.message order by r.id desc))[1] as message
      from recent r left join answered a on a.endpoint = r.endpoint where r.id > coalesce(a.id, 0) group by r.endpoint
      union all
      select since, 'schedule ' || schedule, times, message from run
      union all
      select finished_at, 'backfill ' || id, 1, message from ops.backfill
      where state = 'failed' and is_detached and finished_at > ${now - RECENT_MS}
      union all
      select heartbeat_at, 'backfill ' || id, 1, 'its process ' || owner || ' sends no heartbeat' || ${perhaps}::text from ops.backfill
      where state = 'running' and not ${leaseIsAlive(sql, now)}
      union all
      select heartbeat_at, 'service ' || owner, 1, 'it sends no heartbeat' || ${perhaps}::text from ops.instance
      where not ${leaseIsAlive(sql, now)}
    ) problem`;
  const locked = lock === null ? [] : [{ ...lock, what: 'lock', times: 1 }];
  return [...found, ...locked].sort((a, b) => a.since - b.since || (a.what < b.what ? -1 : 1));
}
