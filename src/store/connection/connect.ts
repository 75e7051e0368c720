/** Connections to Postgres: a pool for the statements of this process, and one connection for the ledger. */
import net from 'node:net';
import postgres from 'postgres';
import { createBackoff } from '../../core/backoff.ts';
import { type Sql, type SqlOrTransaction, TYPE_MAP } from '../values/type-map.ts';
import { createWatchdog, runWatchdog, type Watchdog } from './connection-watchdog.ts';
import { readDatabaseUrl } from './database-url.ts';
import {
  type CloseCounter,
  closeForAll,
  createCloseCounter,
  FLUSHED_AT_ONCE,
  survivesLostConnections,
} from './postgres-js-patches.ts';
import { explainDatabaseError, StoreError } from './store-error.ts';

export type { Sql, SqlOrTransaction };

export type Database = {
  readonly sql: Sql;
  /**
   * One connection for the quota's ledger. So taking quota never waits for a connection that is storing an answer. The statement takes
   * longer to plan than to run, and here it is prepared only once. The takes of this process queue for this connection, and not for the
   * lock on the row of their account.
   */
  readonly ledger: Sql;
  readonly url: string;
  /** Code that opens more connections to this server adds them here. The watchdog closes all of them when the server stops answering. */
  readonly watchdog: Watchdog;
  /** Waits up to five seconds for running statements. */
  close(): Promise<void>;
};

type ConnectOptions = {
  readonly url: string;
  /** Most connections of the pool. The ledger has one of its own, which is opened when first used. */
  readonly max?: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName?: string;
  /** Settings of the server for each connection. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly watchdog?: Watchdog | undefined;
  /** `as named` keeps the names of the columns, for statements that are not ours (of users, or of drizzle's migrator). */
  readonly columns?: 'camelCase' | 'as named';
  /** Default UTC, the only one that the type map can read. `of the server`: the connection sets no time zone. */
  readonly timeZone?: 'UTC' | 'of the server';
  /** False: no statement stays prepared on the server. For statements of users, which are rarely the same twice. Default true. */
  readonly prepare?: boolean;
  /** Statements that may wait on a busy connection for the one before them, even when other connections become free. Default 100. */
  readonly maxPipeline?: number;
};

const reconnectBackoff = createBackoff({ firstMs: 10, mostMs: 1_000 });

/** Timeout for a new connection, unless the address has a `connect_timeout`. */
export const CONNECT_SECONDS = 10;

const OLDEST_SUPPORTED = 150_000;

/**
 * Our own transactions hold locks for a few seconds at most. If another session holds one for longer, Chandler reports it instead of waiting in
 * silence. The `options` of the address can override this.
 */
export const LOCK_TIMEOUT = '-c lock_timeout=30s';

/**
 * Ends the transaction of a process that stopped in the middle of it because its machine is frozen. Otherwise all others would wait for its locks
 * until the machine continues.
 */
export const IDLE_TIMEOUT = '-c idle_in_transaction_session_timeout=60s';

/**
 * While a session is idle, the server notices within two minutes that the client's machine is gone, and not only after the usual two hours. Locks
 * under which one process at a time writes a lake or an attestation have no other limit.
 */
export const KEEPALIVES = '-c tcp_keepalives_idle=60 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3';

/**
 * Our statements rely on these settings, and a login, a database or a server may have others. Any other isolation lets a statement fail when
 * two processes change one row. `extra_float_digits=0` rounds prices. postgres.js reads bytes only as hexadecimal digits.
 * `standard_conforming_strings=off` breaks the migrations. Idle connections of a pool are normal.
 */
export const RELIED_ON = [
  '-c default_transaction_isolation=read\\ committed',
  '-c extra_float_digits=1',
  '-c bytea_output=hex',
  '-c standard_conforming_strings=on',
  '-c idle_session_timeout=0',
].join(' ');

/** @throws StoreError when the address is wrong, no server answers there, or the server is older than Postgres 15. */
export async function openDatabase({ url, max = 10, applicationName = 'chandler' }: ConnectOptions): Promise<Database> {
  const watchdog = createWatchdog();
  const sql = createClient({ url, max, applicationName, watchdog });
  try {
    const [row] = await sql<{ version: string; number: number }[]>`
      select current_setting('server_version') as version, current_setting('server_version_num')::int as number`;
    if (row && row.number < OLDEST_SUPPORTED) {
      throw new StoreError(
        `the server of DATABASE_URL is Postgres ${row.version}`,
        'Chandler needs Postgres 15 or newer',
      );
    }
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw explainDatabaseError(error, url) ?? error;
  }
  const ledger = createClient({ url, max: 1, applicationName, watchdog });
  const stopWatching = watch({ url, applicationName, watchdog });
  return {
    sql,
    ledger,
    url,
    watchdog,
    close: async () => {
      await Promise.all([stopWatching(), sql.end({ timeout: 5 }), ledger.end({ timeout: 5 })]);
    },
  };
}

/** Starts the watchdog on a connection of its own, which is opened when first needed. Returns a function that stops it. */
export function watch({
  url,
  applicationName,
  watchdog,
}: Required<Pick<ConnectOptions, 'url' | 'applicationName'>> & { readonly watchdog: Watchdog }): () => Promise<void> {
  const sql = createClient({ url, max: 1, applicationName, watchdog });
  const { host, port, connectTimeoutSeconds = CONNECT_SECONDS } = readDatabaseUrl(url);
  const stop = new AbortController();
  const check = async () => void (await sql`select`);
  void runWatchdog(watchdog, {
    check,
    at: `${host}:${port}`,
    connectMs: connectTimeoutSeconds * 1000,
    signal: stop.signal,
  });
  return async () => {
    stop.abort();
    await sql.end({ timeout: 0 });
  };
}

/** A client that connects when first used. @throws StoreError when the address is wrong. */
export function createClient({
  url,
  max = 10,
  applicationName = 'chandler',
  settings = {},
  watchdog,
  columns = 'camelCase',
  timeZone = 'UTC',
  prepare = true,
  maxPipeline = 100,
}: ConnectOptions): Sql {
  const address = readDatabaseUrl(url);
  const { user, password, options } = address;
  const sockets = new Set<net.Socket>();
  const closes = createCloseCounter();
  // The address is not passed on: postgres.js would send every parameter that it does not know to the server.
  const sql = postgres({
    // As lists, because postgres.js would cut an IPv6 address at its first colon.
    host: [address.host],
    port: [address.port],
    database: address.database,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ssl: address.ssl,
    max,
    connect_timeout: address.connectTimeoutSeconds ?? CONNECT_SECONDS,
    // In seconds. The default grows to twenty. Each of several connections lost at once counts as one more failure.
    backoff: (failures: number) => reconnectBackoff(failures, Math.random()) / 1000,
    connection: {
      application_name: address.applicationName ?? applicationName,
      options: [LOCK_TIMEOUT, IDLE_TIMEOUT, KEEPALIVES, options, RELIED_ON].filter(Boolean).join(' '),
      ...settings,
      ...(timeZone === 'UTC' ? { TimeZone: timeZone } : {}),
      DateStyle: `ISO${FLUSHED_AT_ONCE}`,
    },
    prepare,
    max_pipeline: maxPipeline,
    fetch_types: false,
    types: TYPE_MAP,
    ...(columns === 'camelCase' ? { transform: { column: { from: postgres.toCamel } } } : {}),
    onnotice: () => undefined,
    // So nothing may use `listen` or `cancel` of this client: their connections do not report that they close. `reserve` works only with an open one.
    onclose: closes.reported,
    // Without noDelay, statements longer than a packet wait for the server's delayed acknowledgement (tens of milliseconds).
    // The socket is returned while it still connects: a factory that waited and then failed would lose the slot in the pool for ever.
    socket: (target: SocketTarget) => {
      for (const socket of sockets) if (socket.destroyed) sockets.delete(socket);
      const socket = connectSocket(target, watchdog, closes);
      sockets.add(socket);
      return socket;
    },
  } as unknown as postgres.Options<Record<string, postgres.PostgresType>>) as unknown as Sql;
  return survivesLostConnections(sql, sockets);
}

/**
 * Runs `work` in a transaction whose statements Postgres plans for the tables as they are now. Use it for statements over tens of
 * thousands of rows: a prepared statement that was planned for small tables may take minutes when they have grown.
 */
export async function withFreshPlans<T>(sql: SqlOrTransaction, work: (tx: SqlOrTransaction) => Promise<T>): Promise<T> {
  const run = async (tx: SqlOrTransaction) => {
    await tx`select set_config('plan_cache_mode', 'force_custom_plan', true)`;
    return work(tx);
  };
  return isPool(sql) ? ((await sql.begin(run)) as T) : run(sql);
}

function isPool(sql: SqlOrTransaction): sql is Sql {
  return 'begin' in sql;
}

/** The parsed options of postgres.js that a socket needs. Its types do not contain them. */
type SocketTarget = {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly ssl: unknown;
};

function connectSocket(
  { host, port, ssl }: SocketTarget,
  watchdog: Watchdog | undefined,
  closes: CloseCounter,
): net.Socket {
  const name = host[0]!;
  const mustFail = closes.mustFail();
  const socket = net.connect({ host: name, port: Number(port[0]), noDelay: true });
  watchdog?.add(socket);
  failOnBadFirstReply(socket, ssl !== false);
  closeForAll(socket, closes.closed);
  // Later, because nobody listens to its errors yet.
  if (mustFail) setImmediate(() => fail(socket, 'the server refuses new sessions', 'CONNECTION_CLOSED'));
  // postgres.js reads the TLS server name here. It sets it only on sockets that it makes itself.
  return Object.assign(socket, { host: name });
}

/** The first bytes that a Postgres server can send: authentication, error, parameter or TLS yes, notice or TLS no, protocol version. */
const FIRST_BYTES = new Set([...'RESNv'].map((letter) => letter.charCodeAt(0)));
const NO_TLS = 'N'.charCodeAt(0);

/**
 * Fails a connection early in three cases. If the server closes it before it is ready, postgres.js would reconnect at once, for ever,
 * because it counts only errors. If the server answers that it has no TLS, postgres.js would begin TLS anyway. And the server may
 * not be Postgres.
 */
function failOnBadFirstReply(socket: net.Socket, wantsTls: boolean): void {
  let first: number | undefined;
  socket.once('data', (data: Buffer) => {
    first = data[0];
    if (wantsTls && first === NO_TLS) fail(socket, 'no TLS here', 'TLS_NOT_OFFERED');
    // For example a web server, which may keep the connection open.
    else if (first !== undefined && !FIRST_BYTES.has(first)) fail(socket, 'not Postgres', 'NOT_POSTGRES');
  });
  socket.once('end', () => {
    if (first === undefined) fail(socket, 'hung up without a word', 'CONNECTION_CLOSED');
  });
}

function fail(socket: net.Socket, message: string, code: string): void {
  socket.destroy(Object.assign(new Error(message), { code }));
}
