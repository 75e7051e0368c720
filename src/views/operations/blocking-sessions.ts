/** Sessions of others that hold a lock for which Chandler waits. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';

export type BlockingSession = {
  readonly pid: number;
  readonly user: string;
  readonly application: string;
  /** Since when Chandler waits for it. */
  readonly since: Instant;
};

/** Who locks a table for a moment need not be told of. Shorter than the service's heartbeat. */
const WORTH_TELLING = '3 seconds';

/** Longest wait first. Sessions of Chandler that block each other are not listed: Postgres and their transactions' ends resolve that. */
export async function readBlockingSessions(sql: SqlOrTransaction): Promise<readonly BlockingSession[]> {
  return sql<BlockingSession[]>`
    with ours as materialized (
      select pid, query_start, wait_event_type from pg_stat_activity
      where datname = current_database() and usename = current_user
        and application_name in (current_setting('application_name'), 'chandler', 'chandler queue')
    ), waits as (
      select unnest(pg_blocking_pids(pid)) as pid, query_start from ours
      where wait_event_type = 'Lock' and query_start < clock_timestamp() - ${WORTH_TELLING}::interval
    )
    select b.pid, b.usename as user, b.application_name as application, min(w.query_start) as since
    from waits w join pg_stat_activity b on b.pid = w.pid
    -- Of a session of somebody else, only a superuser sees the type.
    where coalesce(b.backend_type, 'client backend') = 'client backend' and b.pid not in (select pid from ours)
    group by b.pid, b.usename, b.application_name order by since, b.pid`;
}

/** What is wrong, since when, and what to do. */
export function describeBlocking(sessions: readonly BlockingSession[]): string {
  const [first, ...others] = sessions;
  const { pid, user, application, since } = first!;
  const who = application === '' ? `user '${user}'` : `user '${user}', ${application}`;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return `session ${pid} (${who})${more} holds a lock that Chandler has waited for since ${formatInstant(since)}; let it end its transaction, or end the session: select pg_terminate_backend(${pid})`;
}
