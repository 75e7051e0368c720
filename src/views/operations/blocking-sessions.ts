/** Sessions of others that hold a lock which Chandler needs: one of our sessions waits for it, or every reader of a table would. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';

export type BlockingSession = {
  readonly pid: number;
  readonly user: string;
  readonly application: string;
  /** Since when Chandler waits for it; null: nothing of Chandler waits at the moment. */
  readonly since: Instant | null;
};

/** Who locks a table for a moment need not be told of. Shorter than the time from one look to the next. */
const WORTH_TELLING = '3 seconds';

/** Longest wait first. Sessions of Chandler that block each other are not listed: Postgres and their transactions' ends resolve that. */
export async function readBlockingSessions(sql: SqlOrTransaction): Promise<readonly BlockingSession[]> {
  return sql<BlockingSession[]>`
    with ours as materialized (
      select pid, query_start, wait_event_type from pg_stat_activity
      where datname = current_database() and usename = current_user
        and application_name in (current_setting('application_name'), 'chandler', 'chandler queue', 'chandler serve')
    ), waits as (
      select unnest(pg_blocking_pids(pid)) as pid, query_start as since from ours
      where wait_event_type = 'Lock' and query_start < clock_timestamp() - ${WORTH_TELLING}::interval
      union all
      -- Whoever keeps readers out is listed also while nobody reads: a server that is not ready gets no callers that could wait.
      select l.pid, null from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
      where l.granted and l.mode = 'AccessExclusiveLock' and n.nspname in ('market', 'ops')
        and l.database = (select oid from pg_database where datname = current_database())
    )
    select b.pid, b.usename as user, b.application_name as application, min(w.since) as since
    from waits w join pg_stat_activity b on b.pid = w.pid
    -- Of a session of somebody else, only a superuser sees type and time.
    where coalesce(b.backend_type, 'client backend') = 'client backend' and b.pid not in (select pid from ours)
      and (w.since is not null or coalesce(b.xact_start < clock_timestamp() - ${WORTH_TELLING}::interval, true))
    group by b.pid, b.usename, b.application_name order by since nulls last, b.pid`;
}

/** What is wrong, since when, and what to do. */
export function describeBlocking(sessions: readonly BlockingSession[]): string {
  const [first, ...others] = sessions;
  const { pid, user, application, since } = first!;
  const who = application === '' ? `user '${user}'` : `user '${user}', ${application}`;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const what = since === null ? 'Chandler needs' : `Chandler has waited for since ${formatInstant(since)}`;
  return `session ${pid} (${who})${more} holds a lock that ${what}; let it end its transaction, or end the session: select pg_terminate_backend(${pid})`;
}
