/** Queues and workers of BullMQ on Redis or on Postgres, with their connections, for any kind of job. */
import { createRedisBackend, Queue, Worker } from 'bullmq';
import type { Redis, RedisOptions } from 'ioredis';
import pLimit from 'p-limit';
import pg from 'pg';
import { systemClock } from '../../clock.ts';
import { IDLE_TIMEOUT } from '../../store/connection/connect.ts';
import type { Watchdog } from '../../store/connection/connection-watchdog.ts';
import { pgSettings } from '../../store/connection/pg-client.ts';
import { createMigratedBackend, migrateQueue } from './migrate-queue.ts';
import { pausing } from './pausing.ts';
import { isRedisUnavailable, openRedis, QueueUnavailable, SILENT_WORKER_MS } from './redis.ts';
import { explainEviction, hostAndPort, readEviction, withoutNotice } from './redis-memory.ts';

export type QueueEngine =
  | { readonly kind: 'redis'; readonly url: string }
  /** `watchdog`: the connection watchdog of the same database. */
  | { readonly kind: 'postgres'; readonly url: string; readonly watchdog?: Watchdog };

type WorkerSettings = {
  readonly concurrency: number;
  /** How long the job of a dead worker stays locked. */
  readonly lockMs: number;
  readonly maximumRateLimitDelay?: number;
};
type Handler<Job> = (
  job: RunningJob<Job> & { moveToDelayed(timestamp: number, token?: string): Promise<void> },
  token?: string,
) => Promise<void>;
/** The parts of a job that a worker reads and changes. */
export type RunningJob<Job> = {
  readonly data: Job;
  readonly attemptsMade: number;
  readonly priority: number;
  readonly opts: { readonly attempts?: number };
  /** Milliseconds until the next attempt. */
  readonly delay: number;
  changePriority(to: { readonly priority: number }): Promise<void>;
  updateProgress(progress: object): Promise<void>;
};
const METHODS = [
  'add',
  'addBulk',
  'getJobState',
  'getRanges',
  'remove',
  'getJobCounts',
  'obliterate',
  'rateLimit',
  'removeRateLimitKey',
  'isPaused',
  'resume',
  'close',
] as const;
type Call = (...args: unknown[]) => Promise<unknown>;
type BullQueue<Job> = Pick<Queue<Job>, (typeof METHODS)[number]>;
export type AnyQueue<Job> = BullQueue<Job> & {
  /** Gives these jobs the number that `numberOf` returns, if theirs is higher: workers then take them earlier. `numberOf` gets the present number. */
  raisePriority(ids: readonly string[], numberOf: (number: number) => number): Promise<void>;
  /** What `updateProgress` recorded last, and how many attempts were made; null when the job is gone. */
  progressOf(id: string): Promise<{ readonly progress: unknown; readonly attempts: number } | null>;
  /** The number of jobs that wait or are in progress. */
  size(): Promise<number>;
  /** Rejects when the engine can be read but stores no new job: a Redis that is full. A full disk of Postgres is found elsewhere. */
  checkWritable(): Promise<void>;
  /** Resumes a queue whose wipe was killed halfway. Only a wipe pauses a queue. */
  unpause(): Promise<void>;
};
type AnyWorker<Job> = Pick<Worker<Job, void>, 'close'> & {
  on(event: 'failed', listener: (job: RunningJob<Job> | undefined, error: Error) => void): unknown;
  on(event: 'stalled', listener: (id: string) => void): unknown;
};
export type Connections = {
  queue<Job>(name: string): AnyQueue<Job>;
  worker<Job>(name: string, handler: Handler<Job>, settings: WorkerSettings): AnyWorker<Job>;
  /** False when every call would fail now. */
  isUp(): boolean;
  close(): Promise<void>;
};

const GOODBYE_MS = 1_000;
/** The most jobs whose priority is raised at the same time. */
const MOST_PRIORITY_CHANGES = 100;
/** A stalled job is harmless, because a worker checks it before it does anything. So a job may stall as often as processes die. */
const MAX_STALLED = 1_000;
/**
 * How long a worker without work waits before it requests a job again. A new job, or a delayed job that is due, ends the wait at once, so this number
 * only decides what an idle service costs. A longer wait on Redis is unsafe (BullMQ's issue 1658).
 */
const IDLE_SECONDS = 10;
/** How long a worker waits before it tries an unavailable engine again. */
const RETRY_MS = 1_000;

/**
 * `maxConnections`: connections of the Postgres engine, for all queues and workers together. Each open worker keeps one connection to listen, and
 * there must be at least one more. `onError` gets errors of the connections, which reconnect automatically. `onWarning`: the engine works, but may
 * lose jobs. @throws when the engine cannot be reached.
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
  // While Redis is unavailable, a call of this connection fails at once: the caller decides how long to wait.
  const calls = await openRedis(url);
  calls.on('error', onError);
  const warning = explainEviction(await readEviction(calls), hostAndPort(url));
  if (warning !== null) onWarning(warning.found, warning.fix);
  withoutNotice(calls);
  const workers = new Set<Redis>();
  /** False after a call that found Redis unavailable: a Redis that no longer answers still looks connected. */
  let answers = true;
  return {
    queue: <Job>(name: string) => {
      const queue = new Queue<Job>(name, { connection: calls });
      queue.on('error', onError);
      const guarded = <A extends unknown[], T>(call: (...args: A) => Promise<T>) => {
        return (...args: A): Promise<T> =>
          call.apply(queue, args).then(
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
      const calling = Object.fromEntries(METHODS.map((method) => [method, guarded(queue[method] as Call)]));
      const extended = extend(calling as unknown as BullQueue<Job>, queue);
      return {
        ...extended,
        raisePriority: guarded(extended.raisePriority),
        progressOf: guarded(extended.progressOf),
        // A key that is gone at once, under the name of the queue: the user of a shared Redis may write no other.
        checkWritable: guarded(async () => void (await calls.set(queue.toKey('writable'), '', 'PX', 1))),
      };
    },
    worker: <Job>(name: string, handler: Handler<Job>, settings: WorkerSettings) => {
      // A call of a worker waits until Redis is back, and then reports the end of its job.
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
      const options = { connection, ...workerOptions(settings) };
      const worker = new Worker<Job, void>(name, handler, options, pausing(createRedisBackend));
      worker.on('error', onError);
      return worker as unknown as AnyWorker<Job>;
    },
    isUp: () => answers && calls.status === 'ready',
    close: async () => {
      for (const connection of workers) connection.disconnect();
      calls.disconnect();
    },
  };
}

async function connectPostgres(
  { url, watchdog }: Extract<QueueEngine, { readonly kind: 'postgres' }>,
  max: number,
  onError: (error: Error) => void,
): Promise<Connections> {
  const settings = pgSettings({
    ...{ url, applicationName: 'chandler queue', watchdog },
    // BullMQ finds its tables through the search path. A queue is a cache of the plan: if a crash of the server loses jobs, the next plan finds what
    // is still missing. So no commit waits for the disk.
    settings: `-c search_path=bullmq -c synchronous_commit=off ${IDLE_TIMEOUT}`,
  });
  const pool = new pg.Pool({ ...settings, max, keepAlive: true });
  let isClosing = false;
  // During the shutdown, errors of connections that end no longer matter.
  pool.on('error', (error) => {
    if (!isClosing) onError(error);
  });
  const workers = new Set<Pick<AnyWorker<unknown>, 'close'>>();
  const client = await pool.connect();
  try {
    await migrateQueue(client);
  } finally {
    client.release();
  }
  return {
    queue: <Job>(name: string) => {
      const queue = new Queue(name, { connection: borrowed(pool) }, createMigratedBackend);
      queue.on('error', onError);
      return extend(queue as unknown as BullQueue<Job>, queue);
    },
    worker: <Job>(name: string, handler: Handler<Job>, settings: WorkerSettings) => {
      const options = { connection: borrowed(pool), ...workerOptions(settings) };
      const worker = new Worker(name, handler, options, createMigratedBackend);
      worker.on('error', onError);
      workers.add(worker);
      worker.on('closed', () => workers.delete(worker));
      return worker as unknown as AnyWorker<Job>;
    },
    isUp: () => true,
    close: async () => {
      isClosing = true;
      // A worker that is still open on an ended pool would request jobs without a pause.
      for (const worker of workers) worker.close(true).catch(onError);
      const late = new AbortController();
      // A worker whose server is unavailable keeps its connection, and `pool.end` would wait for it.
      await Promise.race([pool.end(), systemClock.sleep(GOODBYE_MS, late.signal).catch(() => undefined)]);
      late.abort();
    },
  };
}

function workerOptions({ concurrency, lockMs, maximumRateLimitDelay }: WorkerSettings) {
  return {
    concurrency,
    drainDelay: IDLE_SECONDS,
    lockDuration: lockMs,
    stalledInterval: lockMs / 2,
    maxStalledCount: MAX_STALLED,
    runRetryDelay: RETRY_MS,
    ...(maximumRateLimitDelay === undefined ? {} : { maximumRateLimitDelay }),
  };
}

/** Adds to the calls of a queue what BullMQ lacks. */
function extend<Job>(calls: BullQueue<Job>, jobs: Pick<Queue, 'getJob'>): AnyQueue<Job> {
  const bound = Object.fromEntries(METHODS.map((method) => [method, calls[method].bind(calls)]));
  return {
    ...(bound as unknown as BullQueue<Job>),
    // On Postgres an addition of many jobs creates two temporary tables, which takes five times as long as adding one job.
    addBulk: async (jobs) => {
      const [first] = jobs;
      if (jobs.length !== 1 || first === undefined) return calls.addBulk(jobs);
      return [await calls.add(first.name, first.data, first.opts)];
    },
    raisePriority: (ids, numberOf) => raisePriority(jobs, ids, numberOf),
    progressOf: async (id) => {
      const job = await jobs.getJob(id);
      return job === undefined ? null : { progress: job.progress, attempts: job.attemptsMade };
    },
    size: async () => {
      const counts = await calls.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
      return Object.values(counts).reduce((sum, n) => sum + n, 0);
    },
    checkWritable: async () => undefined,
    unpause: async () => {
      if (await calls.isPaused()) await calls.resume();
    },
  };
}

async function raisePriority(
  queue: Pick<Queue, 'getJob'>,
  ids: readonly string[],
  numberOf: (number: number) => number,
): Promise<void> {
  await pLimit(MOST_PRIORITY_CHANGES).map(ids, async (id) => {
    const job = await queue.getJob(id);
    if (job === undefined || job.priority <= numberOf(job.priority)) return;
    await ignoreMissingJob(job.changePriority({ priority: numberOf(job.priority) }));
  });
}

/** Ignores that the job is gone: another worker may have finished it, or somebody may have removed it, and then there is nothing to change. */
export async function ignoreMissingJob(change: Promise<void>): Promise<void> {
  await change.catch((error: unknown) => {
    if (!/Missing key for job/.test(String(error))) throw error;
  });
}

/**
 * The pool that BullMQ gets. BullMQ adds an error listener for each worker and never removes it, and workers come and go with each backfill. So `on`
 * does nothing, and this module listens for errors itself. `end` does nothing: this module closes the pool.
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
