/**
 * The queue of chunks: BullMQ on Redis or on Postgres behind one factory. It is a cache of the plan, nothing more: wiping it
 * loses no work, because the next plan finds exactly what is still missing.
 */
import { DelayedError, UnrecoverableError, Worker } from 'bullmq';
import { systemClock } from '../clock.ts';
import { HIGHEST_PRIORITY } from '../core/tier.ts';
import { type ChunkIdentity, type ChunkJob, chunkJobId } from './chunk-job.ts';
import { Misconfigured, type Outcome, SeriesGivenUp } from './outcome.ts';
import { type Connections, connect, type QueueEngine } from './queue-engine.ts';
import { QueueAway } from './redis.ts';
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

export type WorkerEvents = {
  readonly onOutcome: (job: ChunkJob, outcome: Outcome) => void;
  /** `final`: no attempt is left, or none could help. */
  readonly onFailure: (job: ChunkJob, error: Error, final: boolean) => void;
};

export type ChunkWorker = {
  /** Waits for what is in flight, but not for an engine that is away; with `force` it is left to the next stalled check. */
  close(force?: boolean): Promise<void>;
};

export type ChunkQueue = {
  /**
   * Adds those that are not there yet. Of those that wait the ones of the highest priority are taken first, and among them in turn; one
   * that waits already with a lower priority gets this one.
   */
  add(jobs: readonly ChunkJob[], priority?: number): Promise<void>;
  /** `gone`: done, or failed for good, or never there. */
  stateOf(job: ChunkIdentity): Promise<'waiting' | 'active' | 'gone'>;
  /** The ids of all chunks that wait or are under way; one that changes its place meanwhile may be left out. */
  ids(): Promise<ReadonlySet<string>>;
  /** Takes back what no worker has begun. */
  remove(jobs: readonly ChunkJob[]): Promise<void>;
  size(): Promise<number>;
  /** Removes everything. A queue that somebody begins to work on meanwhile is left as it is: it is in use. */
  wipe(): Promise<void>;
  /** Undoes what a wipe that died halfway leaves behind: a paused queue. Nobody else pauses it. */
  unpause(): Promise<void>;
  /** `snooze` turns an outcome's wait into real milliseconds (a test's clock may run faster). */
  work(options: {
    readonly concurrency: number;
    /** `attempt` counts from 1. */
    readonly handle: (job: ChunkJob, attempt: number) => Promise<Outcome>;
    readonly snoozeMs: (outcome: Extract<Outcome, { kind: 'snoozed' | 'deferred' }>) => number;
    readonly events: WorkerEvents;
  }): ChunkWorker;
  close(): Promise<void>;
};

const JOB = 'chunk';
/** Enough for minutes of trouble; longer trouble holds everybody through the ledger, which burns no attempt. */
const ATTEMPTS = 8;
const BACKOFF_MS = 1_000;
const LOCK_MS = 10_000;
/** A snoozing queue looks again at least so often, so that a lifted hold is noticed. */
const LONGEST_SNOOZE_MS = 10_000;
/** A worker that is closed just when a snooze begins sleeps this out first. */
const SNOOZE_STEP_MS = 500;
/** How soon a worker whose engine is away looks for it again. */
const LOOK_AGAIN_MS = 1_000;
/** How long an engine may take to be told that a worker leaves. */
const GOODBYE_MS = 5_000;
const GOODBYE_STEP_MS = 100;
/** Three workers listen in a service (a fourth for a moment), and four ask: a server of 100 connections has room for ten such processes. */
const MOST_CONNECTIONS = 8;
/** A stalled chunk is harmless (it is checked before it is asked), so it may stall as often as processes die. */
const MAX_STALLED = 1_000;

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
  const { onError, lockMs = LOCK_MS } = options;
  const queue = connections.queue<ChunkJob>(name);
  queue.on('error', onError);
  const jobOptions = {
    attempts: options.attempts ?? ATTEMPTS,
    backoff: { type: 'exponential', delay: options.backoffMs ?? BACKOFF_MS, jitter: 0.5 },
    removeOnComplete: true,
    removeOnFail: true,
  };
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
    stateOf: async (job) => {
      const state = await queue.getJobState(chunkJobId(job));
      if (state === 'active') return 'active';
      return state === 'unknown' || state === 'completed' || state === 'failed' ? 'gone' : 'waiting';
    },
    // In the order a chunk goes through them.
    ids: async () => new Set(await queue.getRanges(['waiting', 'prioritized', 'active', 'delayed'], 0, -1)),
    remove: async (jobs) => {
      await Promise.all(jobs.map((job) => queue.remove(chunkJobId(job))));
    },
    size: async () => {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
      return Object.values(counts).reduce((sum, n) => sum + n, 0);
    },
    wipe: () =>
      queue.obliterate({ force: true }).catch((error: unknown) => {
        // It pauses first; a worker has started since.
        if (!/non-paused queue/.test(asError(error).message)) throw error;
      }),
    work: ({ concurrency, handle, snoozeMs, events }) => {
      // A snooze left by a run that has ended must not hold up this one; whoever still has to wait snoozes again.
      void queue.removeRateLimitKey().catch(onError);
      void unpause().catch(onError);
      const inHand = new Set<Promise<Outcome>>();
      const worker = connections.worker<ChunkJob>(
        name,
        async (job, token) => {
          const mine = handle(job.data, job.attemptsMade + 1);
          inHand.add(mine);
          const outcome = await mine
            .finally(() => inHand.delete(mine))
            .catch((error: unknown) => {
              if (error instanceof Misconfigured || error instanceof SeriesGivenUp)
                throw Object.assign(new UnrecoverableError(error.message), { cause: error });
              throw error;
            });
          events.onOutcome(job.data, outcome);
          if (outcome.kind === 'snoozed') {
            const ms = Math.ceil(Math.min(Math.max(snoozeMs(outcome), 1), LONGEST_SNOOZE_MS));
            // While it is away nobody takes a chunk from it, and a snooze must burn no attempt.
            await queue.rateLimit(ms).catch((error: unknown) => {
              if (!(error instanceof QueueAway)) throw error;
            });
            throw Worker.RateLimitError();
          }
          if (outcome.kind === 'deferred') {
            await job.moveToDelayed(systemClock.now() + Math.ceil(Math.max(snoozeMs(outcome), 1)), token);
            throw new DelayedError();
          }
        },
        {
          concurrency,
          lockDuration: lockMs,
          stalledInterval: lockMs / 2,
          maxStalledCount: MAX_STALLED,
          maximumRateLimitDelay: SNOOZE_STEP_MS,
          runRetryDelay: LOOK_AGAIN_MS,
        },
      );
      worker.on('error', onError);
      worker.on('failed', (job, error) => {
        if (!job) return;
        const final = error instanceof UnrecoverableError || job.attemptsMade >= (job.opts.attempts ?? 1);
        events.onFailure(job.data, error instanceof UnrecoverableError ? asError(error.cause ?? error) : error, final);
      });
      /** Resolves when nothing is in hand any more and the engine has had its time to be told. */
      const tiredOfWaiting = async () => {
        while (inHand.size > 0) await Promise.allSettled(inHand);
        for (let waited = 0; connections.isUp() && waited < GOODBYE_MS; waited += GOODBYE_STEP_MS)
          await systemClock.sleep(GOODBYE_STEP_MS);
      };
      return {
        close: async (force) => {
          const closed = worker.close(force);
          closed.catch(onError);
          await Promise.race([closed, tiredOfWaiting()]);
        },
      };
    },
    close: () => queue.close(),
  };
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
