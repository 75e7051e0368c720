/** Recognises errors after which a statement may be repeated: the database cannot be reached, stores nothing, or is locked by another session. */

/**
 * A connection could not be made, or was lost. Or the server is starting up or shutting down, was killed, has no connection left, or ended a
 * session because this process stopped in the middle of its transaction.
 */
const AWAY =
  /^(E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|AI_AGAIN|NOTFOUND)|CONNECT_TIMEOUT|CONNECTION_(CLOSED|DESTROYED)|57P0[123]|53300|25P03)$/;

/** These errors of node-postgres (the driver of the queue) have no code. */
const UNAVAILABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired)/;

/**
 * SQLSTATE `lock_not_available`: another session holds a lock for longer than `lock_timeout`. And `deadlock_detected`: two sessions waited for
 * each other, and Postgres has ended the transaction of this one so that the other one continues.
 */
const LOCKED = /^(55P03|40P01)$/;

/**
 * SQLSTATE `serialization_failure`. None of our transactions is serializable, so it comes from a standby, which ends a statement (or its session)
 * to apply what the primary has removed.
 */
const ENDED_BY_STANDBY = '40001';

/** SQLSTATE `disk_full`. */
const DISK_FULL = '53100';

/** SQLSTATE `read_only_sql_transaction`: a standby (for example during a failover), or a server that its host has made read-only. */
const READ_ONLY = '25006';

const PASSING: ReadonlySet<string> = new Set([ENDED_BY_STANDBY, DISK_FULL, READ_ONLY]);

/** SQLSTATE `query_canceled`: a statement took longer than its `statement_timeout`, or somebody cancelled it. */
const ENDED_EARLY = '57014';

/** True if the server ended our statement before it was done. */
export function isEndedEarly(error: unknown): boolean {
  return someCause(error, ({ code }) => code === ENDED_EARLY);
}

/** True if the disk of the server has no room for what our statement would store. */
export function isDiskFull(error: unknown): boolean {
  return someCause(error, ({ code }) => code === DISK_FULL);
}

/** True if the server answers but cannot store anything. */
export function cannotStore(error: unknown): boolean {
  return someCause(error, ({ code }) => code === DISK_FULL || code === READ_ONLY);
}

/** True if another session holds a lock that our statement needs. */
export function isLocked(error: unknown): boolean {
  return someCause(error, ({ code }) => typeof code === 'string' && LOCKED.test(code));
}

/** True if the database cannot be reached, stores nothing, or is locked. Node reports the failures of several addresses of a host as one error. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return someCause(error, (e) => {
    const { code, syscall } = e;
    if (typeof code === 'string' && (AWAY.test(code) || LOCKED.test(code) || PASSING.has(code))) return true;
    // The socket file is missing, because the server is down.
    if (code === 'ENOENT' && syscall === 'connect') return true;
    if (UNAVAILABLE_TEXT.test(e.message)) return true;
    return e instanceof AggregateError && e.errors.length > 0 && e.errors.every(isDatabaseUnavailable);
  });
}

type SystemError = Error & { readonly code?: unknown; readonly syscall?: unknown };

/** Also checks the causes, because other libraries wrap errors of the driver. */
function someCause(error: unknown, is: (error: SystemError) => boolean): boolean {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) if (is(e)) return true;
  return false;
}
