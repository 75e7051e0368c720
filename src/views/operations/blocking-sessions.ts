/** Sessions of other programs that hold a lock which Chandler needs: one of our sessions waits for it, or every reader of a table would. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { CAN_WAIT, type Holder } from '../../store/connection/lock.ts';

type BlockingSession = Omit<Holder, 'tables'>;

/** A lock that another session holds and Chandler needs. */
export type HeldLock = {
  /** The lock is held since then or later: the start of the transaction that holds it. If that is unknown, the time of this check. */
  readonly since: Instant;
  /** The text of `describeBlocking`. */
  readonly message: string;
};

/** Null: there is no such lock. The statement itself waits for no lock. `now`: by the clock of the database. */
export async function readHeldLock(sql: SqlOrTransaction, now: Instant): Promise<HeldLock | null> {
  const sessions = await readBlockingSessions(sql);
  if (sessions.length === 0) return null;
  return { since: sessions[0]!.since ?? now, message: describeBlocking(sessions) };
}

/** The message as a sentence of its own. */
export function lockSentence({ message }: HeldLock): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}

/** Shorter locks are not reported. This is shorter than the time between two checks. */
const WORTH_TELLING = '3 seconds';

/** Longest wait first. Sessions of Chandler that block each other are not listed: Postgres and the ends of their transactions resolve that. */
export async function readBlockingSessions(sql: SqlOrTransaction): Promise<readonly BlockingSession[]> {
  return sql<BlockingSession[]>`
    with ours as materialized (
      select pid, query_start, wait_event_type, query from pg_stat_activity
      where datname = current_database() and usename = current_user
        and application_name in (current_setting('application_name'), 'chandler', 'chandler queue', 'chandler serve')
    ), needed as materialized (
      select pid from ours where wait_event_type = 'Lock' and query not like ${`%${CAN_WAIT}`}
        and query_start < clock_timestamp() - ${WORTH_TELLING}::interval
    ), waits as (
      -- Upkeep that can wait may hold a lock for which another session of ours waits.
      select unnest(pg_blocking_pids(pid)) as pid, query_start as since from ours
      where pid in (select pid from needed)
        or wait_event_type = 'Lock' and pid in (select unnest(pg_blocking_pids(pid)) from needed)
      union all
      -- Lists a session that blocks readers even while nobody reads: a server that is not ready gets no callers that could wait.
      select l.pid, null from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
      where l.granted and l.mode = 'AccessExclusiveLock' and n.nspname in ('market', 'ops')
        and l.database = (select oid from pg_database where datname = current_database())
    )
    select b.pid, b.usename as user, b.application_name as application, min(b.xact_start) as since
    from waits w join pg_stat_activity b on b.pid = w.pid
    -- Only a superuser sees type and time of other users' sessions.
    where coalesce(b.backend_type, 'client backend') = 'client backend' and b.pid not in (select pid from ours)
      and (w.since is not null or coalesce(b.xact_start < clock_timestamp() - ${WORTH_TELLING}::interval, true))
    group by b.pid, b.usename, b.application_name order by min(w.since) nulls last, b.pid`;
}

/**
 * Says what is wrong, since when, and what to do. The time is that of the session's transaction: a waiting statement of ours gives up after
 * `lock_timeout` and begins again, and then the time of its wait begins again, too.
 */
export function describeBlocking(sessions: readonly BlockingSession[]): string {
  const [first, ...others] = sessions;
  const { pid, user, application, since } = first!;
  const who = application === '' ? `user '${user}'` : `user '${user}', ${application}`;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const holds = others.length === 0 ? 'holds a lock' : 'hold locks';
  const when =
    since === null ? '' : `, ${others.length === 0 ? '' : 'the first '}in a transaction since ${formatInstant(since)}`;
  return `session ${pid} (${who})${more} ${holds} that Chandler needs${when}; let it end its transaction, or end the session: select pg_terminate_backend(${pid})`;
}
