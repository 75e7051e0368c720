/**
 * The queue of chunks: BullMQ on Redis or on Postgres behind one factory. It is a cache of the plan, nothing more: wiping it
 * loses no work, because the next plan finds exactly what is still missing.
 */
import pLimit from 'p-limit';
import { HIGHEST_PRIORITY } from '../../core/tier.ts';
import { JOB_LOCK_MS } from '../../store/work/lease.ts';
import { type ChunkIdentity, type ChunkJob, chunkJobId } from './chunk-job.ts';
import { type ChunkWork, type ChunkWorker, startChunkWorker } from './chunk-worker.ts';
import { type Connections, connect, type QueueEngine } from './queue-engine.ts';
import { createTickQueue, type TickQueue } from './tick-queue.ts';

export type QueueOptions = {
  readonly engine: QueueEngine;
  /** Connections of the Postgres engine at most, for all queues of a host; each worker keeps one of them. */
  readonly maxConnections?: number;
  /** Errors of the engine's connections; the queue reconnects by itself. */
  readonly onError: (error: Error) => void;
  /** Told when the engine works, but may lose what it is given: what was found, and what would mend it. */
  readonly onWarning?: (found: string, fix: string) => void;
  /** Attempts per chunk, and the pause before the second one; it doubles each time, with jitter. */
  readonly attempts?: number;
  readonly backoffMs?: number;
  /** How long a dead worker's chunk stays locked. */
  readonly lockMs?: number;
};

export type ChunkQueue = {
  /**
   * Adds those that are not there yet. Of those that wait the ones of the highest priority are taken first, and among them in turn; one
   * that waits already with a lower priority gets this one.
   */
  add(jobs: readonly ChunkJob[], priority?: number): Promise<void>;
  /** In their order. `gone`: done, or failed for good, or never there. */
  statesOf(jobs: readonly ChunkIdentity[]): Promise<readonly ('waiting' | 'active' | 'gone')[]>;
  /** The ids of all chunks that wait or are under way; one that changes its place meanwhile may be left out. */
  ids(): Promise<ReadonlySet<string>>;
  /** Takes back what no worker has begun. */
  remove(jobs: readonly ChunkJob[]): Promise<void>;
  size(): Promise<number>;
  /** Removes everything. A queue that somebody begins to work on meanwhile is left as it is: it is in use. */
  wipe(): Promise<void>;
  /** Undoes what a wipe that died halfway leaves behind: a paused queue. Nobody else pauses it. */
  unpause(): Promise<void>;
  work(work: ChunkWork): ChunkWorker;
  close(): Promise<void>;
};

const JOB = 'chunk';
/** Enough for minutes of trouble; longer trouble holds everybody through the ledger, which burns no attempt. */
const ATTEMPTS = 8;
const BACKOFF_MS = 1_000;
/**
 * Three workers listen in a service (a fourth for a moment), and four ask: with the eight connections of its other work, ten such processes
 * want a server of 200.
 */
const MOST_CONNECTIONS = 8;
/** Questions to the engine about single jobs that are under way at once. */
const MOST_CALLS = 100;

/** An engine that is there: the queues on it are opened when their names are known. */
export type QueueHost = {
  open(name: string): ChunkQueue;
  openTicks(name: string): TickQueue;
  /** After the queues. */
  close(): Promise<void>;
};

/** @throws when the engine cannot be reached at all. */
export async function openQueueHost(options: QueueOptions): Promise<QueueHost> {
  const connections = await connect(
    options.engine,
    options.maxConnections ?? MOST_CONNECTIONS,
    options.onError,
    options.onWarning,
  );
  return {
    open: (name) => createChunkQueue(connections, name, options),
    openTicks: (name) => createTickQueue(connections, name, options),
    close: () => connections.close(),
  };
}

/** One queue on an engine of its own. @throws when the engine cannot be reached at all. */
export async function openChunkQueue({
  name = 'chunks',
  ...options
}: QueueOptions & { readonly name?: string }): Promise<ChunkQueue> {
  const host = await openQueueHost(options);
  const queue = host.open(name);
  return { ...queue, close: () => queue.close().finally(() => host.close()) };
}

function createChunkQueue(connections: Connections, name: string, options: QueueOptions): ChunkQueue {
  const { onError, lockMs = JOB_LOCK_MS } = options;
  const queue = connections.queue<ChunkJob>(name);
  queue.on('error', onError);
  const jobOptions = {
    attempts: options.attempts ?? ATTEMPTS,
    backoff: { type: 'exponential', delay: options.backoffMs ?? BACKOFF_MS, jitter: 0.5 },
    removeOnComplete: true,
    removeOnFail: true,
  };
  const limit = pLimit(MOST_CALLS);
  const unpause = async () => {
    if (await queue.isPaused()) await queue.resume();
  };
  return {
    unpause,
    add: async (jobs, priority = 0) => {
      if (jobs.length === 0) return;
      // BullMQ takes the lowest first, and 0 for none at all.
      const opts = { ...jobOptions, priority: 1 + HIGHEST_PRIORITY - priority };
      const waiting = new Set(await queue.getRanges(['prioritized'], 0, -1));
      await queue.addBulk(jobs.map((data) => ({ name: JOB, data, opts: { ...opts, jobId: chunkJobId(data) } })));
      await queue.hasten(
        jobs.map(chunkJobId).filter((id) => waiting.has(id)),
        opts.priority,
      );
    },
    statesOf: (jobs) =>
      limit.map(jobs, async (job) => {
        const state = await queue.getJobState(chunkJobId(job));
        if (state === 'active') return 'active';
        return state === 'unknown' || state === 'completed' || state === 'failed' ? 'gone' : 'waiting';
      }),
    // In the order a chunk goes through them.
    ids: async () => new Set(await queue.getRanges(['waiting', 'prioritized', 'active', 'delayed'], 0, -1)),
    remove: async (jobs) => {
      await limit.map(jobs, (job) => queue.remove(chunkJobId(job)));
    },
    size: async () => {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
      return Object.values(counts).reduce((sum, n) => sum + n, 0);
    },
    wipe: () =>
      queue.obliterate({ force: true }).catch((error: unknown) => {
        // It pauses first; a worker has started since.
        if (!(error instanceof Error && /non-paused queue/.test(error.message))) throw error;
      }),
    work: (work) => {
      // A snooze left by a run that has ended must not hold up this one; whoever still has to wait snoozes again.
      void queue.removeRateLimitKey().catch(onError);
      void unpause().catch(onError);
      return startChunkWorker({ connections, name, queue, lockMs, onError }, work);
    },
    close: () => queue.close(),
  };
}
