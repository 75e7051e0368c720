/** Is it the database that cannot be reached? What is asked of it may then be asked again when it is back. */

/** A connection that could not be made, or was lost; a server that is starting up, shutting down, was killed, or has no connection left. */
const AWAY =
  /^(E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|AI_AGAIN|NOTFOUND)|CONNECT_TIMEOUT|CONNECTION_(CLOSED|DESTROYED)|57P0[123]|53300)$/;

/** node-postgres (the queue's driver) gives these no code. */
const UNAVAILABLE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired)/;

/** Looks through the causes as well: others wrap what the driver said. Several addresses of one host fail as one error. */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) {
    const { code, syscall } = e as { readonly code?: unknown; readonly syscall?: unknown };
    if (typeof code === 'string' && AWAY.test(code)) return true;
    // The socket file of a server that is down.
    if (code === 'ENOENT' && syscall === 'connect') return true;
    if (UNAVAILABLE_TEXT.test(e.message)) return true;
    if (e instanceof AggregateError && e.errors.length > 0 && e.errors.every(isDatabaseUnavailable)) return true;
  }
  return false;
}
