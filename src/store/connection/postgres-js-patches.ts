/**
 * Keeps postgres.js (3.4.9) running, and its results complete, when connections are lost. Without these patches eight faults would end the
 * process, damage the pool, or delay or mislead its callers:
 *
 * - postgres.js writes `rollback`, or the next statement of a transaction, to a lost connection. This throws outside of any promise. So
 *   the patch never settles a statement of a transaction that fails because of its connection, nor the work of a transaction whose
 *   connection was lost meanwhile. The transaction itself still rejects, because postgres.js reports the close to it.
 * - A statement given to a connection just before its close is reported stays in the buffer of that connection, and every attempt to
 *   reconnect waits behind it until a timeout. This happens when several connections are lost at once (the server restarts) and a caller
 *   continues after the first error on the next one. So the patch delays the error until all lost connections have been reported. And it
 *   makes the first message of a connection long enough to be written at once, which clears the buffer.
 * - After an error, postgres.js expects no new statement on that connection, but may still send one before the close. That statement, and
 *   all later ones, would never be answered. So the patch reports every close as one that no error preceded.
 * - postgres.js counts the rows of a result per connection. If an error, a timeout or a close ends a result in the middle, it does not
 *   reset the count: the next result then begins with that many empty places. So the patch removes these places.
 * - A connection that was lost during a statement keeps the statement, and the end of its client waits for it until the timeout. So the
 *   patch ends a client when all its sockets are closed.
 * - If a client is ended while it connects, its socket still opens, sends nothing, and closes only at the connection timeout. Until then the
 *   server keeps a process for it, and nobody can drop a database there. So the patch closes the socket when the client ends.
 * - A connection that was lost during a statement keeps the statement. If the server then refuses new sessions (it starts up, has no connection left,
 *   or the database is gone), postgres.js takes the refusal for a result of the old statement, and reconnects at once, for ever, hundreds of times
 *   a second. The new statement is never settled. It does not report these closes, so the patch counts them, and fails the next attempt.
 * - A connection also keeps the error with which the server ended or refused its last session. When it is opened again, perhaps hours later, its first
 *   statement fails with that error before it is sent: it looks like a new outage. So the patch sends such a statement once more.
 */
import type net from 'node:net';
import { systemClock } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../values/type-map.ts';

/** White space after the value of a setting: postgres.js writes a message at once when it has 1,024 bytes. */
export const FLUSHED_AT_ONCE = ' '.repeat(1024);
/** Longer than one turn of the event loop, and too short to matter after a lost connection. */
const MOMENT_MS = 25;
const NEVER = new Promise<never>(() => undefined);

type Begin = (...args: unknown[]) => Promise<unknown>;
type Rejected = (error: unknown) => Promise<never>;

/** Counts the closes of sockets that postgres.js does not report: it repeats these attempts to connect although the server refuses. */
export type CloseCounter = {
  /** Called when a socket has closed. */
  closed(): void;
  /** Called when postgres.js reports that a connection has closed. */
  reported(): void;
  /** True once for each close that was not reported: the attempt that follows it must fail. */
  mustFail(): boolean;
};

export function createCloseCounter(): CloseCounter {
  let unreported = 0;
  let failed = 0;
  return {
    closed: () => void unreported++,
    reported: () => void unreported--,
    mustFail: () => {
      // A close may be reported later than its socket closes.
      failed = Math.min(failed, unreported);
      if (unreported === failed) return false;
      failed++;
      return true;
    },
  };
}

/** Reports the close of an open connection without the error that came before it, so that every statement given to it rejects. */
export function closeForAll(socket: net.Socket, onClose: () => void): void {
  const emit = socket.emit.bind(socket) as (event: string, ...args: unknown[]) => boolean;
  let connected = false;
  socket.once('connect', () => {
    connected = true;
  });
  socket.emit = ((event: string, ...args: unknown[]) => {
    if (event === 'close') onClose();
    return event === 'close' && connected ? emit(event, false) : emit(event, ...args);
  }) as typeof socket.emit;
}

/** Returns the same client with the patches: a lost connection is then an ordinary error. `sockets` are all that the client has opened. */
export function survivesLostConnections(sql: Sql, sockets: ReadonlySet<net.Socket>): Sql {
  const end: Sql['end'] = async (options) => {
    const ended = sql.end(options).finally(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    });
    await (sockets.size === 0 ? ended : Promise.race([ended, untilClosed(sockets)]));
  };
  const begin: Begin = (...args) => {
    const work = args.pop() as (tx: SqlOrTransaction) => unknown;
    let [hasBegun, over] = [false, false];
    const finish = () => {
      over = true;
    };
    const unlessOver = { isOver: () => over, rejected: () => NEVER };
    const attempt = () =>
      (sql.begin as unknown as Begin)(...args, (tx: SqlOrTransaction) => {
        hasBegun = true;
        return settlesUnless(unlessOver.isOver, async () => work(guarded(tx, unlessOver)));
      });
    const done = attempt().catch((error: unknown) => {
      if (hasBegun || !isOfServer(error)) throw error;
      return attempt();
    });
    done.then(finish, finish);
    return done.catch(later);
  };
  return guarded(sql, { ...DELAYED, onQuery: resendOnce }, { begin, end });
}

/** What a query of postgres.js has besides a promise. A cursor sets `reject` again for each piece. */
type Sendable = {
  reject: (error: unknown) => void;
  readonly handler: (query: unknown) => void;
  /** Null until a connection has been told to send the query. */
  readonly state: unknown;
};

/**
 * Sends a statement once more if it fails with an error of the server although it was never sent: the error is that of an earlier session, or the
 * server refuses this one. So a statement that is refused costs two attempts to connect.
 */
function resendOnce(query: object): void {
  const sendable = query as Sendable;
  let { reject } = sendable;
  let isSentAgain = false;
  const rejectOrResend = (error: unknown) => {
    if (isSentAgain || sendable.state !== null || !isOfServer(error)) return reject(error);
    isSentAgain = true;
    // Later, because postgres.js still works on the connection that rejects the query.
    queueMicrotask(() => sendable.handler(query));
  };
  Object.defineProperty(query, 'reject', {
    get: () => rejectOrResend,
    set: (next: Sendable['reject']) => {
      reject = next;
    },
  });
}

/** True for an error that the server has sent. All others come from the connection, or from postgres.js itself. */
function isOfServer(error: unknown): boolean {
  return (error as { readonly severity?: unknown }).severity !== undefined;
}

async function untilClosed(sockets: ReadonlySet<net.Socket>): Promise<void> {
  const open = [...sockets].filter(({ destroyed }) => !destroyed);
  await Promise.all(open.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
}

async function settlesUnless(isOver: () => boolean, work: () => Promise<unknown>): Promise<unknown> {
  try {
    const result = await work();
    return isOver() ? NEVER : result;
  } catch (error) {
    if (isOver()) return NEVER;
    throw error;
  }
}

/** Throws the error; after a short delay if a connection was lost. */
async function later(error: unknown): Promise<never> {
  if (isConnectionLost(error)) await systemClock.sleep(MOMENT_MS);
  throw error;
}

/** Functions that a client has and its transactions do not. */
type Own = { readonly begin?: Begin; readonly end?: Sql['end'] };
type Guard = {
  readonly isOver: () => boolean;
  readonly rejected: Rejected;
  /** Called when a query is made. It may become a part of another statement, and never be sent. */
  readonly onQuery?: (query: object) => void;
};
const DELAYED: Guard = { isOver: () => false, rejected: later };

function guarded<T extends SqlOrTransaction>(sql: T, guard: Guard, own: Own = {}): T {
  return new Proxy(sql, {
    apply: (target, self, args) => guardQuery(Reflect.apply(target as never, self, args), guard),
    get: (target, name, receiver) => {
      if (Object.hasOwn(own, name)) return own[name as keyof Own];
      const value = Reflect.get(target, name, receiver) as unknown;
      if (name === 'reserve') return async () => guarded(await (value as Sql['reserve'])(), DELAYED);
      if (name !== 'unsafe' && name !== 'file') return value;
      return (...args: unknown[]) => guardQuery((value as (...all: unknown[]) => unknown)(...args), guard);
    },
  });
}

/** Changes only what happens when the query is awaited. It stays a query, because other statements may contain it. */
function guardQuery(query: unknown, { isOver, rejected, onQuery }: Guard): unknown {
  if (!(query instanceof Promise)) return query;
  onQuery?.(query);
  const then = query.then.bind(query) as Promise<unknown>['then'];
  // biome-ignore lint/suspicious/noThenProperty: it is a promise, and its own then is what is guarded
  query.then = ((onDone?: (result: unknown) => unknown, onFailed?: (error: unknown) => unknown) => {
    if (isOver()) return NEVER;
    const done = (result: unknown) => {
      releaseParameters(query);
      removeHoles(result);
      return onDone ? onDone(result) : result;
    };
    return then(done, (error: unknown) => {
      if (isConnectionLost(error)) return rejected(error).catch(onFailed);
      if (onFailed) return onFailed(error);
      throw error;
    });
  }) as typeof query.then;
  const cursor = (query as unknown as { readonly cursor?: Cursor }).cursor?.bind(query);
  if (cursor !== undefined) {
    const whole = (rows: number, use?: Use) => {
      if (use === undefined) return withoutHoles(cursor(rows) as AsyncIterable<unknown[]>);
      return cursor(rows, (piece) => {
        removeHoles(piece);
        return use(piece);
      });
    };
    Object.assign(query, {
      cursor: (...args: [number, Use?] | [Use?]) =>
        typeof args[0] === 'number' ? whole(args[0], args[1]) : whole(1, args[0]),
    });
  }
  return query;
}

type Use = (piece: unknown[]) => unknown;
type Cursor = (rows: number, use?: Use) => unknown;

async function* withoutHoles(pieces: AsyncIterable<unknown[]>): AsyncGenerator<unknown[]> {
  for await (const rows of pieces) {
    removeHoles(rows);
    yield rows;
  }
}

/** Removes empty places at the beginning of a result. `result` may also be the list of results of several statements. */
function removeHoles(result: unknown): void {
  if (!Array.isArray(result) || result.length === 0) return;
  const rows = 'command' in result ? result : (result[0] as unknown);
  if (Array.isArray(rows) && rows.length > 0 && !(0 in rows))
    rows.splice(
      0,
      rows.findIndex((_, i) => i in rows),
    );
}

/**
 * Frees the parameters of a finished query. Only a full garbage collection frees the query itself (a chain of dead queries refers to it), and
 * with it tens of kilobytes of parameters: half of the garbage of a backfill.
 */
function releaseParameters(query: object): void {
  Object.assign(query, { args: null, parameters: null });
}

/** True if the connection failed. False for errors that the server sent: these have a SQLSTATE. */
function isConnectionLost(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|E[A-Z]{4,})$/.test(code);
}
