/** Can the database not be reached, or store nothing, or does another session lock it? What is asked of it may then be asked again. */

/**
 * A connection that could not be made, or was lost; a server that is starting up, shutting down, was killed, or has no connection left, or that ended
 * a session because this process stood still in its transaction.
 */
const AWAY =
  /^(E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|AI_AGAIN|NOTFOUND)|CONNECT_TIMEOUT|CONNECTION_(CLOSED|DESTROYED)|57P0[123]|53300|25P03)$/;

/** node-postgres (the queue's driver) gives these no code. */
const UNAVAILABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired)/;

/**
 * SQLSTATE `lock_not_available`: another session holds a lock for longer than `lock_timeout`. And `deadlock_detected`: two sessions waited for
 * each other, and Postgres has ended this one's transaction, so the other one goes on.
 */
const LOCKED = /^(55P03|40P01)$/;

/**
 * SQLSTATE `serialization_failure`. No transaction of ours is serializable: a standby ends a statement (or its session) to apply what the primary
 * has removed.
 */
const ENDED_BY_STANDBY = '40001';

/** SQLSTATE `disk_full`. */
const DISK_FULL = '53100';

/** SQLSTATE `read_only_sql_transaction`: a standby, as while another server takes over; or its host has made the server read-only. */
const READ_ONLY = '25006';

const PASSING: ReadonlySet<string> = new Set([ENDED_BY_STANDBY, DISK_FULL, READ_ONLY]);

/** Has the server's disk no room for what our statement would store? */
export function isDiskFull(error: unknown): boolean {
  return someCause(error, ({ code }) => code === DISK_FULL);
}

/** Does the server answer, and store nothing? */
export function storesNothing(error: unknown): boolean {
  return someCause(error, ({ code }) => code === DISK_FULL || code === READ_ONLY);
}

/** Does another session hold a lock that our statement needs? */
export function isLocked(error: unknown): boolean {
  return someCause(error, ({ code }) => typeof code === 'string' && LOCKED.test(code));
}

/** The database cannot be reached, stores nothing, or is locked. Several addresses of one host fail as one error. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return someCause(error, (e) => {
    const { code, syscall } = e;
    if (typeof code === 'string' && (AWAY.test(code) || LOCKED.test(code) || PASSING.has(code))) return true;
    // The socket file of a server that is down.
    if (code === 'ENOENT' && syscall === 'connect') return true;
    if (UNAVAILABLE_TEXT.test(e.message)) return true;
    return e instanceof AggregateError && e.errors.length > 0 && e.errors.every(isDatabaseUnavailable);
  });
}

type SystemError = Error & { readonly code?: unknown; readonly syscall?: unknown };

/** Looks through the causes as well: others wrap what the driver said. */
function someCause(error: unknown, is: (error: SystemError) => boolean): boolean {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) if (is(e)) return true;
  return false;
}
