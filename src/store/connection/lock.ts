/**
 * Locks under which only one process at a time does something. Each is a row of `ops.lock`, which only the owner of the schema may read: anybody
 * who may log in could take an advisory lock and keep it. Also finds the session that holds a lock for which our statement waited too long.
 */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import type { Sql, SqlOrTransaction } from '../values/type-map.ts';
import { isLocked } from './database-unavailable.ts';
import { explainDatabaseError, StoreError } from './store-error.ts';

/** How long to wait for a lock. Longer than `LOCK_TIMEOUT`: migrations and audits of many series rightly hold their lock for a long time. */
const NAMED_LOCK_TIMEOUT = '15min';

/**
 * Ends a statement of upkeep that waits for readers, and gives up soon to try again at its next run. A session that it waits for (a backup, a
 * long query) is not reported as the holder of a lock that Chandler needs, unless another session of Chandler waits behind the statement.
 */
export const CAN_WAIT = ' /* can wait */';

/** Waits until no other transaction holds the lock of this name, and holds it until this transaction ends. */
export async function takeLock(tx: SqlOrTransaction, name: string): Promise<void> {
  await tx`select set_config('lock_timeout', ${NAMED_LOCK_TIMEOUT}, true)`;
  const rows = await tx`select from ops.lock where name = ${name} for update`;
  // The lock is used for the first time. If two transactions insert the row at once, the second one waits here.
  if (rows.length === 0)
    await tx`insert into ops.lock (name) values (${name}) on conflict (name) do update set name = excluded.name`;
  await tx`set local lock_timeout to default`;
}

/** Like `explainDatabaseError`. If a statement waited too long for a lock, it also names the session that holds it. Call it at once. */
export async function explainWithHolder(
  error: unknown,
  { sql, url }: { readonly sql: SqlOrTransaction; readonly url: string },
): Promise<StoreError | null> {
  const explained = explainDatabaseError(error, url);
  if (explained === null || !isLocked(error)) return explained;
  // If the holders cannot be read, the error itself still matters more.
  const [holder, ...others] = await readHolders(sql).catch(() => []);
  if (holder === undefined) return explained;
  const { pid, user, application, since, tables } = holder;
  const who = `session ${pid} (user '${user}'${application === '' ? '' : `, ${application}`})`;
  const where = `in a transaction${since === null ? '' : ` since ${formatInstant(since)}`} that uses ${tables.join(', ')}`;
  const more =
    others.length === 0 ? '' : `, or one of ${formatCounted(others.length, 'other session')} that hold weaker locks`;
  return new StoreError(
    `another session holds a lock that Chandler needs: ${who}, ${where}${more}`,
    `let it end its transaction, or end the session (select pg_terminate_backend(${pid})), and run the command again`,
    error,
  );
}

export type Holder = {
  readonly pid: number;
  readonly user: string;
  readonly application: string;
  /** When its transaction began. Null if this user may not see it. */
  readonly since: Instant | null;
  readonly tables: readonly string[];
};

/** The lock modes of Postgres, the weakest first. */
const MODES = [
  'AccessShareLock',
  'RowShareLock',
  'RowExclusiveLock',
  'ShareUpdateExclusiveLock',
  'ShareLock',
  'ShareRowExclusiveLock',
  'ExclusiveLock',
  'AccessExclusiveLock',
];

/**
 * The sessions that have held locks on our tables for at least as long as a statement waits. After the statement has given up, Postgres no
 * longer shows for whom it waited. Order: sessions of other programs first, then the strongest lock, then the oldest transaction.
 */
async function readHolders(sql: SqlOrTransaction): Promise<readonly Holder[]> {
  return sql<Holder[]>`
    select b.pid, b.usename as user, b.application_name as application, b.xact_start as since,
      array_agg(distinct n.nspname || '.' || c.relname) as tables
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    join pg_stat_activity b on b.pid = l.pid
    where l.granted and c.relkind in ('r', 'p') and n.nspname in ('market', 'ops') and b.datname = current_database()
      and b.pid <> pg_backend_pid() and coalesce(b.xact_start <= clock_timestamp() - current_setting('lock_timeout')::interval, true)
    group by b.pid, b.usename, b.application_name, b.xact_start
    order by b.application_name = current_setting('application_name'), max(array_position(${MODES}::text[], l.mode)) desc,
      b.xact_start, b.pid`;
}

/**
 * Runs `work` under the lock of this name. If another process holds the lock, it does not run `work` and resolves to null. If the session of the
 * lock is lost, it rejects when the work has ended, so that a caller who tries again does not work beside it.
 */
export async function withLockUnlessHeld<T>(sql: Sql, name: string, work: () => Promise<T>): Promise<T | null> {
  await sql`insert into ops.lock (name) values (${name}) on conflict do nothing`;
  let working: Promise<T> | undefined;
  const begun = sql.begin(async (tx) => {
    const rows = await tx`select from ops.lock where name = ${name} for update skip locked`;
    if (rows.length === 0) return null;
    // This session is idle during the work. (A statement without parameters also closes the portal of the previous one. The work might wait for
    // the snapshot of that portal: Postgres does not detach a partition while older snapshots exist.)
    await tx.unsafe('set local idle_in_transaction_session_timeout = 0');
    working = work();
    return working;
  }) as Promise<T | null>;
  // `begin` rejects as soon as the session is lost, while the work still runs.
  return begun.finally(() => working?.catch(() => undefined));
}
