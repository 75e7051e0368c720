/**
 * Keeps postgres.js (3.4.9) alive, and what it reads whole, when connections are lost. Six things would end the process, spoil the pool
 * or hold up others:
 *
 * - It writes `rollback`, or the next statement of a transaction, to a connection that is gone: an exception outside of any
 *   promise. So here a statement of a transaction that fails for its connection's sake never settles, nor does the work of a
 *   transaction whose connection was lost meanwhile; the transaction itself rejects, because postgres.js tells it of the close.
 * - A statement handed to a connection just before its close is heard of stays in that connection's buffer, and every attempt
 *   to connect again waits for a time-out behind it. It happens when several are lost at once (the server restarts): whoever hears
 *   of the first goes on at once, on the next. So here the bad news comes a moment later, when all of it is known; and the
 *   first message of a connection is long enough that it is written at once, which clears the buffer of what was left in it.
 * - After an error it expects no new statement on that connection, although it may still give it one before the close; that one would
 *   never be answered, and with it all that come after it. So here a close always counts as one that nobody has been told of.
 * - It counts the rows of a result for each connection, and goes on counting when an error, a time-out or a close ended the one before in
 *   its midst: the rows of the next one then come behind as many places that hold nothing. So here those places are taken away.
 * - A connection that was lost in the midst of a statement keeps it, and the end of its client waits for that statement until the time-out.
 *   So here a client has ended when all its sockets are closed.
 * - A client that is ended while it connects leaves the socket to itself: it is opened, says nothing, and is closed at the time-out of a
 *   connection. The server keeps a process for it, and until then nobody can drop a database there. So here the end closes it.
 */
import type net from 'node:net';
import { systemClock } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../values/type-map.ts';

/** White space after a setting's value: postgres.js writes at once what has 1,024 bytes. */
export const FLUSHED_AT_ONCE = ' '.repeat(1024);
/** Longer than one turn of the event loop takes; nobody notices it after a lost connection. */
const MOMENT_MS = 25;
const NEVER = new Promise<never>(() => undefined);

type Begin = (...args: unknown[]) => Promise<unknown>;
type Rejected = (error: unknown) => Promise<never>;

/** Reports the close of an open connection without the error that came before it: then every statement given to it rejects. */
export function closeForAll(socket: net.Socket): void {
  const emit = socket.emit.bind(socket) as (event: string, ...args: unknown[]) => boolean;
  let connected = false;
  socket.once('connect', () => {
    connected = true;
  });
  socket.emit = ((event: string, ...args: unknown[]) =>
    event === 'close' && connected ? emit(event, false) : emit(event, ...args)) as typeof socket.emit;
}

/** The same client, for which a lost connection is an error like any other. `sockets`: all that it has opened. */
export function survivesLostConnections(sql: Sql, sockets: ReadonlySet<net.Socket>): Sql {
  const end: Sql['end'] = async (options) => {
    const ended = sql.end(options).finally(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    });
    await (sockets.size === 0 ? ended : Promise.race([ended, untilClosed(sockets)]));
  };
  const begin: Begin = (...args) => {
    const work = args.pop() as (tx: SqlOrTransaction) => unknown;
    let over = false;
    const finish = () => {
      over = true;
    };
    const unlessOver = { isOver: () => over, rejected: () => NEVER };
    const done = (sql.begin as unknown as Begin)(...args, (tx: SqlOrTransaction) =>
      settlesUnless(unlessOver.isOver, async () => work(guarded(tx, unlessOver))),
    );
    done.then(finish, finish);
    return done.catch(later);
  };
  return guarded(sql, { isOver: () => false, rejected: later }, { begin, end });
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

/** The error, a moment later if a connection was lost. */
async function later(error: unknown): Promise<never> {
  if (isConnectionLost(error)) await systemClock.sleep(MOMENT_MS);
  throw error;
}

/** What only a client has, and not its transactions. */
type Own = { readonly begin?: Begin; readonly end?: Sql['end'] };
type Guard = { readonly isOver: () => boolean; readonly rejected: Rejected };

function guarded<T extends SqlOrTransaction>(sql: T, guard: Guard, own: Own = {}): T {
  return new Proxy(sql, {
    apply: (target, self, args) => guardQuery(Reflect.apply(target as never, self, args), guard),
    get: (target, name, receiver) => {
      if (Object.hasOwn(own, name)) return own[name as keyof Own];
      const value = Reflect.get(target, name, receiver) as unknown;
      if (name === 'reserve') return async () => guarded(await (value as Sql['reserve'])(), guard);
      if (name !== 'unsafe' && name !== 'file') return value;
      return (...args: unknown[]) => guardQuery((value as (...all: unknown[]) => unknown)(...args), guard);
    },
  });
}

/** Only what is awaited is changed: a query stays a query, because statements are built of others. */
function guardQuery(query: unknown, { isOver, rejected }: Guard): unknown {
  if (!(query instanceof Promise)) return query;
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

/** A result, or the list of those of several statements, in which rows may come behind places that hold nothing. */
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
 * A query that is done is found only by a full collection (some chain of dead ones leads to it), and with it tens of kilobytes of what
 * was sent: half of what a backfill gives the collector to do.
 */
function releaseParameters(query: object): void {
  Object.assign(query, { args: null, parameters: null });
}

/** Not what the server says (it names a SQLSTATE), but what became of the way to it. */
function isConnectionLost(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|E[A-Z]{4,})$/.test(code);
}
