/** What the queues stand on: BullMQ's parts, and their connections, on Redis or on Postgres; for any kind of job. */
import net from 'node:net';
import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq';
import type { Redis, RedisOptions } from 'ioredis';
import pLimit from 'p-limit';
import pg from 'pg';
import { systemClock } from '../../clock.ts';
import { CONNECT_SECONDS } from '../../store/connection/connect.ts';
import type { Line } from '../../store/connection/connection-watchdog.ts';
import { readDatabaseUrl } from '../../store/connection/database-url.ts';
import { isRedisUnavailable, openRedis, QueueUnavailable, SILENT_WORKER_MS } from './redis.ts';
import { explainEviction, readEviction, whereIs, withoutNotice } from './redis-memory.ts';

export type QueueEngine =
  | { readonly kind: 'redis'; readonly url: string }
  /** `line`: of the database that is open there. */
  | { readonly kind: 'postgres'; readonly url: string; readonly line?: Line };

export type WorkerSettings = {
  readonly concurrency: number;
  readonly lockDuration: number;
  readonly stalledInterval: number;
  readonly maxStalledCount: number;
  readonly maximumRateLimitDelay?: number;
  readonly runRetryDelay: number;
};
export type Handler<Job> = (
  job: {
    readonly data: Job;
    readonly attemptsMade: number;
    moveToDelayed(timestamp: number, token?: string): Promise<void>;
  },
  token?: string,
) => Promise<void>;
export type AnyQueue<Job> = Pick<
  Queue<Job>,
  | 'addBulk'
  | 'getJobState'
  | 'getRanges'
  | 'remove'
  | 'getJobCounts'
  | 'obliterate'
  | 'rateLimit'
  | 'removeRateLimitKey'
  | 'isPaused'
  | 'resume'
  | 'close'
> & {
  /** Those that wait with a higher number than this priority get it: they are taken earlier. */
  hasten(ids: readonly string[], priority: number): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
};
type AnyWorker<Job> = Pick<Worker<Job, void>, 'close'> & {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(
    event: 'failed',
    listener: (job: { data: Job; attemptsMade: number; opts: { attempts?: number } } | undefined, error: Error) => void,
  ): unknown;
};
export type Connections = {
  queue<Job>(name: string): AnyQueue<Job>;
  worker<Job>(name: string, handler: Handler<Job>, settings: WorkerSettings): AnyWorker<Job>;
  /** False: whatever is asked of it now would fail. */
  isUp(): boolean;
  close(): Promise<void>;
};

const GOODBYE_MS = 1_000;
/** Jobs whose priority is raised at the same time. */
const MOST_HASTENED = 100;

/**
 * `maxConnections`: of the Postgres engine, for all queues and workers together. Each worker that is open keeps one to listen;
 * without another one nothing is done at all. `onWarning`: it works, but not as it should. @throws when it cannot be reached at all.
 */
export async function connect(
  engine: QueueEngine,
  maxConnections: number,
  onError: (error: Error) => void,
  onWarning: (found: string, fix: string) => void = () => undefined,
): Promise<Connections> {
  return engine.kind === 'redis'
    ? connectRedis(engine.url, onError, onWarning)
    : connectPostgres(engine, maxConnections, onError);
}

async function connectRedis(
  url: string,
  onError: (error: Error) => void,
  onWarning: (found: string, fix: string) => void,
): Promise<Connections> {
  // What we ask ourselves fails at once while it is away: whoever asks decides how long to wait.
  const calls = await openRedis(url);
  calls.on('error', onError);
  const warning = explainEviction(await readEviction(calls), whereIs(url));
  if (warning !== null) onWarning(warning.found, warning.fix);
  withoutNotice(calls);
  const workers = new Set<Redis>();
  /** One that is silent looks connected. */
  let answers = true;
  return {
    queue: <Job>(name: string) => {
      const queue = new Queue<Job>(name, { connection: calls });
      const or = <A extends unknown[], T>(ask: (...args: A) => Promise<T>) => {
        return (...args: A) =>
          ask.apply(queue, args).then(
            (result) => {
              answers = true;
              return result;
            },
            (error: unknown) => {
              answers = !isRedisUnavailable(error);
              throw answers ? error : new QueueUnavailable(error as Error, url);
            },
          );
      };
      return {
        addBulk: or(queue.addBulk),
        hasten: or((ids: readonly string[], priority: number) => hasten(queue, ids, priority)),
        getJobState: or(queue.getJobState),
        getRanges: or(queue.getRanges),
        remove: or(queue.remove),
        getJobCounts: or(queue.getJobCounts),
        obliterate: or(queue.obliterate),
        rateLimit: or(queue.rateLimit),
        removeRateLimitKey: or(queue.removeRateLimitKey),
        isPaused: or(queue.isPaused),
        resume: or(queue.resume),
        close: or(queue.close),
        on: (event: 'error', listener: (error: Error) => void) => queue.on(event, listener),
      } as unknown as AnyQueue<Job>;
    },
    worker: <Job>(name: string, handler: Handler<Job>, settings: WorkerSettings) => {
      // What a worker asks waits until it is back: a chunk that ended meanwhile is told as ended then.
      const connection = calls.duplicate({
        maxRetriesPerRequest: null,
        enableOfflineQueue: true,
        autoResendUnfulfilledCommands: true,
        lazyConnect: false,
        commandTimeout: undefined,
        socketTimeout: SILENT_WORKER_MS,
      } as RedisOptions);
      connection.on('error', onError);
      workers.add(connection);
      return new Worker<Job, void>(name, handler, { connection, ...settings }) as unknown as AnyWorker<Job>;
    },
    isUp: () => answers && calls.status === 'ready',
    close: async () => {
      for (const connection of workers) connection.disconnect();
      calls.disconnect();
    },
  };
}

async function connectPostgres(
  { url, line }: Extract<QueueEngine, { readonly kind: 'postgres' }>,
  max: number,
  onError: (error: Error) => void,
): Promise<Connections> {
  // The address is taken apart by us: its `sslmode` must mean here what it means to our other driver.
  const { applicationName, connectTimeoutSeconds = CONNECT_SECONDS, options, ...address } = readDatabaseUrl(url);
  const settings = {
    ...address,
    connectionTimeoutMillis: connectTimeoutSeconds * 1000,
    stream: () => {
      const socket = new net.Socket();
      line?.add(socket);
      return socket;
    },
    ...(applicationName === undefined ? {} : { application_name: applicationName }),
    // BullMQ finds its tables through the search path. A queue is a cache of the plan: what a crash of the server takes from it is
    // asked again only where it is still missing, so nobody waits for a disk on its behalf.
    options: `${options ?? ''} -c search_path=bullmq -c synchronous_commit=off`,
  };
  const pool = new pg.Pool({ ...settings, max, keepAlive: true });
  let isClosing = false;
  // Its connections say goodbye by themselves: what becomes of that is nobody's error any more.
  pool.on('error', (error) => {
    if (!isClosing) onError(error);
  });
  const client = await pool.connect();
  try {
    await runMigrations(client);
  } finally {
    client.release();
  }
  return {
    queue: <Job>(name: string) => {
      const queue = new Queue(name, { connection: borrowed(pool) }, createPostgresBackend);
      return Object.assign(queue, {
        hasten: (ids: readonly string[], priority: number) => hasten(queue, ids, priority),
      }) as unknown as AnyQueue<Job>;
    },
    worker: <Job>(name: string, handler: Handler<Job>, settings: WorkerSettings) =>
      new Worker(
        name,
        handler,
        { connection: borrowed(pool), ...settings },
        createPostgresBackend,
      ) as unknown as AnyWorker<Job>,
    isUp: () => true,
    close: async () => {
      isClosing = true;
      const late = new AbortController();
      // A worker that could not say goodbye to a server that is unavailable keeps its connection, and the pool would wait for it.
      await Promise.race([pool.end(), systemClock.sleep(GOODBYE_MS, late.signal).catch(() => undefined)]);
      late.abort();
    },
  };
}

async function hasten(queue: Pick<Queue, 'getJob'>, ids: readonly string[], priority: number): Promise<void> {
  await pLimit(MOST_HASTENED).map(ids, async (id) => {
    const job = await queue.getJob(id);
    if (job === undefined || job.priority <= priority) return;
    await job.changePriority({ priority }).catch((error: unknown) => {
      // Taken and done meanwhile.
      if (!/Missing key for job/.test(String(error))) throw error;
    });
  });
}

/**
 * The pool as BullMQ sees it: whoever is given it listens for its errors and never stops, and workers come and go with each
 * backfill. We listen ourselves.
 */
function borrowed(pool: pg.Pool): pg.Pool {
  const view: Pick<pg.Pool, 'connect' | 'query' | 'end' | 'on' | 'options'> = {
    connect: pool.connect.bind(pool),
    query: pool.query.bind(pool),
    end: async () => undefined,
    on: () => pool,
    options: pool.options,
  };
  return view as pg.Pool;
}
