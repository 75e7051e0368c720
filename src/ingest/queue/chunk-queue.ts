/**
 * The queue of chunks, on Redis or on Postgres. It is only a cache of the plan: if it is wiped, no work is lost, because the next plan finds
 * what is still missing.
 */
import pLimit from 'p-limit';
import { JOB_LOCK_MS } from '../../store/work/lease.ts';
import { type ChunkIdentity, type ChunkJob, chunkJobId } from './chunk-job.ts';
import { type ChunkPlaces, numberAt, numberOfNew, readWait } from './chunk-wait.ts';
import { type ChunkWork, type ChunkWorker, startChunkWorker } from './chunk-worker.ts';
import { type Connections, connect, type QueueEngine } from './queue-engine.ts';
import { createTickQueue, type TickQueue } from './tick-queue.ts';

export type QueueOptions = {
  readonly engine: QueueEngine;
  /** The most connections of the Postgres engine, for all queues of a host. Each worker keeps one of them. */
  readonly maxConnections?: number;
  /** Called with errors of the engine's connections; the queue reconnects automatically. */
  readonly onError: (error: Error) => void;
  /** Called when the engine works, but may lose jobs: what is wrong, and how to correct it. */
  readonly onWarning?: (found: string, fix: string) => void;
  /** Attempts per chunk, and the wait before the second attempt. The wait doubles each time, with jitter. */
  readonly attempts?: number;
  readonly backoffMs?: number;
  /** How long the job of a dead worker stays locked. */
  readonly lockMs?: number;
};

export type ChunkQueue = {
  /**
   * Adds the jobs that are not in the queue yet. Workers take jobs of the highest priority first, and jobs of one priority in the order in which they
   * came; a retry keeps its place. A job that already waits with a lower priority gets this one.
   */
  add(jobs: readonly ChunkJob[], priority?: number): Promise<void>;
  /** The states in the order of `jobs`. `gone`: done, failed for good, or never in the queue. */
  statesOf(jobs: readonly ChunkIdentity[]): Promise<readonly ('waiting' | 'active' | 'gone')[]>;
  /** The ids of all chunks that wait or are in progress. A chunk that changes its state during the call may be missing. */
  ids(): Promise<ReadonlySet<string>>;
  /** The ids that no free worker can take now: a worker has begun the chunk, or the chunk waits for a retry or a second opinion. */
  begunIds(): Promise<ReadonlySet<string>>;
  /** Where these chunks are. A chunk that changes its state during the call may be missing. */
  placesOf(jobs: readonly ChunkIdentity[]): Promise<ChunkPlaces>;
  /** Removes the jobs that no worker has begun. */
  remove(jobs: readonly ChunkJob[]): Promise<void>;
  size(): Promise<number>;
  /** Removes everything. If a worker starts during the wipe, the queue is in use and stays as it is. */
  wipe(): Promise<void>;
  /** Rejects when the engine can be read but stores no new job. */
  checkWritable(): Promise<void>;
  /** Resumes a queue that a killed wipe has left paused. Nothing else pauses it. */
  unpause(): Promise<void>;
  work(work: ChunkWork): ChunkWorker;
  close(): Promise<void>;
};

/** Enough for minutes of failures. During a longer outage the ledger holds all requests, and no attempt is used. */
const ATTEMPTS = 8;
const BACKOFF_MS = 1_000;
/**
 * A service has three workers that listen (for a moment a fourth), and four connections for calls. Together with eight connections for its other
 * work, ten such processes need a server with 200 connections.
 */
const MOST_CONNECTIONS = 8;
/** The most calls about single jobs at the same time. */
const MOST_CALLS = 100;

/** The most chunks whose wait for the next attempt is reported. */
const MOST_REPORTED = 20;

/** A connected engine; it opens the queues by name. */
export type QueueHost = {
  open(name: string): ChunkQueue;
  openTicks(name: string): TickQueue;
  /** Called after the queues are closed. */
  close(): Promise<void>;
};

/** @throws when the engine cannot be reached. */
export async function openQueueHost(options: QueueOptions): Promise<QueueHost> {
  const { engine, maxConnections = MOST_CONNECTIONS, onError, onWarning, lockMs = JOB_LOCK_MS } = options;
  const connections = await connect(engine, maxConnections, onError, onWarning);
  return {
    open: (name) => createChunkQueue(connections, name, { ...options, lockMs }),
    openTicks: (name) => createTickQueue(connections, name, { onError, lockMs }),
    close: () => connections.close(),
  };
}

function createChunkQueue(
  connections: Connections,
  name: string,
  { onError, lockMs, attempts = ATTEMPTS, backoffMs = BACKOFF_MS }: QueueOptions & { readonly lockMs: number },
): ChunkQueue {
  const queue = connections.queue<ChunkJob>(name);
  const jobOptions = {
    attempts,
    backoff: { type: 'exponential', delay: backoffMs, jitter: 0.5 },
    removeOnComplete: true,
    removeOnFail: true,
  };
  const limit = pLimit(MOST_CALLS);
  return {
    checkWritable: queue.checkWritable,
    unpause: queue.unpause,
    add: async (jobs, priority = 0) => {
      if (jobs.length === 0) return;
      const opts = { ...jobOptions, priority: numberOfNew(priority) };
      const waiting = new Set(await queue.getRanges(['prioritized', 'delayed'], 0, -1));
      await queue.addBulk(jobs.map((data) => ({ name: 'chunk', data, opts: { ...opts, jobId: chunkJobId(data) } })));
      const ids = jobs.map(chunkJobId).filter((id) => waiting.has(id));
      await queue.raisePriority(ids, (number) => numberAt(priority, number));
    },
    statesOf: (jobs) =>
      limit.map(jobs, async (job) => {
        const state = await queue.getJobState(chunkJobId(job));
        if (state === 'active') return 'active';
        return state === 'unknown' || state === 'completed' || state === 'failed' ? 'gone' : 'waiting';
      }),
    // A chunk goes through these states in this order, so a chunk that moves on during the call is still found.
    ids: async () => new Set(await queue.getRanges(['waiting', 'prioritized', 'active', 'delayed'], 0, -1)),
    begunIds: async () => new Set(await queue.getRanges(['active', 'delayed'], 0, -1)),
    placesOf: async (jobs) => {
      const ids = new Set(jobs.map(chunkJobId));
      const ours = (all: readonly string[]) => all.filter((id) => ids.has(id));
      const queued = ours(await queue.getRanges(['waiting', 'prioritized'], 0, -1));
      const active = ours(await queue.getRanges(['active'], 0, -1));
      const delayed = ours(await queue.getRanges(['delayed'], 0, -1, true));
      const progress = await limit.map(delayed.slice(0, MOST_REPORTED), async (id) => ({
        id,
        job: await queue.progressOf(id),
      }));
      const waits = progress.flatMap(({ id, job }) => {
        const wait = readWait(job?.progress);
        return wait === null ? [] : [{ id, attempts: job!.attempts, ...wait }];
      });
      waits.sort((a, b) => a.until - b.until);
      return { inProgress: active.length, queued: queued.length, retrying: delayed.length, waits };
    },
    remove: async (jobs) => {
      await limit.map(jobs, (job) => queue.remove(chunkJobId(job)));
    },
    size: queue.size,
    wipe: () =>
      queue.obliterate({ force: true }).catch((error: unknown) => {
        // BullMQ pauses the queue first, and a worker has started since.
        if (!(error instanceof Error && /non-paused queue/.test(error.message))) throw error;
      }),
    work: (work) => {
      // A snooze of an earlier run must not hold this run; a worker that still has to wait snoozes again.
      void queue.removeRateLimitKey().catch(onError);
      void queue.unpause().catch(onError);
      return startChunkWorker({ connections, name, queue, lockMs, onError }, work);
    },
    close: () => queue.close(),
  };
}
