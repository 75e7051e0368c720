/**
 * The queue of chunks: BullMQ on Redis or on Postgres behind one factory. It is a cache of the plan, nothing more: wiping it
 * loses no work, because the next plan finds exactly what is still missing.
 */
import { DelayedError, UnrecoverableError, Worker } from 'bullmq';
import { systemClock } from '../../clock.ts';
import { HIGHEST_PRIORITY } from '../../core/tier.ts';
import { Misconfigured, type Outcome, SeriesGivenUp } from '../outcome.ts';
import { chunkIdsOf, chunksOf, type JobData, jobIdOf, jobOf, jobsOf } from './chunk-batch.ts';
import { type ChunkIdentity, type ChunkJob, chunkJobId } from './chunk-job.ts';
import { type Connections, connect, type JobInHand, type QueueEngine } from './queue-engine.ts';
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
   * that waits already with a lower priority gets this one. Up to `together` of them share a job (default: each is one); where that is
   * more than one, no two may add the same chunks at the same moment.
   */
  add(jobs: readonly ChunkJob[], priority?: number, together?: number): Promise<void>;
  /** In their order. `gone`: done, or failed for good, or never there. */
  statesOf(jobs: readonly ChunkIdentity[]): Promise<readonly ('waiting' | 'active' | 'gone')[]>;
  /** The ids of all chunks that wait or are under way; one that changes its place meanwhile may be left out. */
  ids(): Promise<ReadonlySet<string>>;
  /** Takes back what no worker has begun, with what shares a job with it. */
  remove(jobs: readonly ChunkJob[]): Promise<void>;
  /** In chunks. */
  size(): Promise<number>;
  /** Removes everything. A queue that somebody begins to work on meanwhile is left as it is: it is in use. */
  wipe(): Promise<void>;
  /** Undoes what a wipe that died halfway leaves behind: a paused queue. Nobody else pauses it. */
  unpause(): Promise<void>;
  /** `snooze` turns an outcome's wait into real milliseconds (a test's clock may run faster). */
  work(options: {
    readonly concurrency: number;
    /** Told of the chunks that share a job before the first of them is handled; what it returns is called when their job has ended. */
    readonly onBatch?: (chunks: readonly ChunkJob[]) => () => Promise<void>;
    /** `attempt` counts from 1. */
    readonly handle: (job: ChunkJob, attempt: number) => Promise<Outcome>;
    readonly snoozeMs: (outcome: Extract<Outcome, { kind: 'snoozed' | 'deferred' }>) => number;
    readonly events: WorkerEvents;
  }): ChunkWorker;
  close(): Promise<void>;
};

const JOB = 'chunk';
/** Where a job may be, in the order it goes through them. */
const PLACES = ['waiting', 'prioritized', 'active', 'delayed'] as const;
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
/**
 * Three workers listen in a service (a fourth for a moment), and four ask: with the eight connections of its other work, ten such processes
 * want a server of 200.
 */
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
  const queue = connections.queue<JobData>(name);
  queue.on('error', onError);
  const { attempts = ATTEMPTS, backoffMs = BACKOFF_MS } = options;
  const jobOptions = {
    attempts,
    backoff: { type: 'exponential', delay: backoffMs, jitter: 0.5 },
    removeOnComplete: true,
    removeOnFail: true,
  };
  const unpause = async () => {
    if (await queue.isPaused()) await queue.resume();
  };
  /** Job by chunk, both by name; in the order a chunk goes through these places. */
  const jobsIn = async (...places: readonly (typeof PLACES)[number][]) => {
    const jobIds = await queue.getRanges([...places], 0, -1);
    return new Map(jobIds.flatMap((jobId) => chunkIdsOf(jobId).map((id) => [id, jobId] as const)));
  };
  return {
    unpause,
    add: async (jobs, priority = 0, together = 1) => {
      if (jobs.length === 0) return;
      // BullMQ takes the lowest first, and 0 for none at all.
      const opts = { ...jobOptions, priority: 1 + HIGHEST_PRIORITY - priority };
      // The engine knows a job by its name, and so does not know the chunks of one that several share.
      const there = await jobsIn(...PLACES);
      // Where one goes back to that is snoozed meanwhile.
      const waiting = await jobsIn('prioritized');
      const missing = jobs.filter((job) => !there.has(chunkJobId(job)) && !waiting.has(chunkJobId(job)));
      const added = jobsOf(missing, together).map((data) => {
        return { name: JOB, data, opts: { ...opts, jobId: jobIdOf(data) } };
      });
      await queue.addBulk(added);
      const late = jobs.map((job) => waiting.get(chunkJobId(job))).filter((jobId) => jobId !== undefined);
      await queue.hasten([...new Set(late)], opts.priority);
    },
    statesOf: async (jobs) => {
      const states = await Promise.all(jobs.map((job) => queue.getJobState(chunkJobId(job))));
      const isGone = (state: string) => state === 'unknown' || state === 'completed' || state === 'failed';
      // What is no job of its own may be one of several.
      const [waiting, active] = states.some(isGone)
        ? [await jobsIn('waiting', 'prioritized', 'delayed'), await jobsIn('active')]
        : [];
      return states.map((state, i) => {
        if (!isGone(state)) return state === 'active' ? 'active' : 'waiting';
        const id = chunkJobId(jobs[i]!);
        if (active?.has(id)) return 'active';
        return waiting?.has(id) ? 'waiting' : 'gone';
      });
    },
    ids: async () => new Set((await jobsIn(...PLACES)).keys()),
    remove: async (jobs) => {
      const waiting = await jobsIn('waiting', 'prioritized', 'delayed');
      const ids = new Set(jobs.map(chunkJobId).map((id) => waiting.get(id) ?? id));
      await Promise.all([...ids].map((id) => queue.remove(id)));
    },
    size: async () => (await jobsIn(...PLACES)).size,
    wipe: () =>
      queue.obliterate({ force: true }).catch((error: unknown) => {
        // It pauses first; a worker has started since.
        if (!/non-paused queue/.test(asError(error).message)) throw error;
      }),
    work: ({ concurrency, onBatch, handle, snoozeMs, events }) => {
      // A snooze left by a run that has ended must not hold up this one; whoever still has to wait snoozes again.
      void queue.removeRateLimitKey().catch(onError);
      void unpause().catch(onError);
      const inHand = new Set<Promise<Outcome>>();
      /** Nothing is begun any more: what is in hand now is the last. */
      let isClosing = false;
      /** Jobs that another worker may have by now. */
      const lost = new Set<string>();
      const handled = async (chunk: ChunkJob, attempt: number) => {
        const mine = handle(chunk, attempt);
        inHand.add(mine);
        const outcome = await mine
          .finally(() => inHand.delete(mine))
          .catch((error: unknown) => {
            if (error instanceof Misconfigured || error instanceof SeriesGivenUp)
              throw Object.assign(new UnrecoverableError(error.message), { cause: error });
            throw error;
          });
        events.onOutcome(chunk, outcome);
        return outcome;
      };
      const delayOf = (outcome: Extract<Outcome, { kind: 'deferred' }>) => Math.ceil(Math.max(snoozeMs(outcome), 1));
      const snooze = async (outcome: Extract<Outcome, { kind: 'snoozed' }>): Promise<never> => {
        const ms = Math.ceil(Math.min(Math.max(snoozeMs(outcome), 1), LONGEST_SNOOZE_MS));
        // While it is away nobody takes a chunk from it, and a snooze must burn no attempt.
        await queue.rateLimit(ms).catch((error: unknown) => {
          if (!(error instanceof QueueAway)) throw error;
        });
        throw Worker.RateLimitError();
      };
      const workOne = async (chunk: ChunkJob, job: JobInHand<JobData>, token?: string) => {
        // One that has left a batch has made an attempt there.
        const before = attempts - (job.opts.attempts ?? attempts);
        const outcome = await handled(chunk, before + job.attemptsMade + 1);
        if (outcome.kind === 'snoozed') await snooze(outcome);
        if (outcome.kind === 'deferred') {
          await job.moveToDelayed(systemClock.now() + delayOf(outcome), token);
          throw new DelayedError();
        }
      };
      /** What leaves its batch; as a job of its own, it has its own name, delay and attempts. */
      const leave = async (data: JobData, own: Partial<typeof jobOptions> & { priority: number; delay?: number }) => {
        for (;;) {
          try {
            await queue.addBulk([{ name: JOB, data, opts: { ...jobOptions, ...own, jobId: jobIdOf(data) } }]);
            return;
          } catch (error) {
            // What waits for it costs nobody an attempt.
            if (!(error instanceof QueueAway) || isClosing) throw error;
            await systemClock.sleep(LOOK_AGAIN_MS);
          }
        }
      };
      const workBatch = async (chunks: readonly ChunkJob[], job: JobInHand<JobData>) => {
        const { priority } = job;
        const failed = async (chunk: ChunkJob, error: unknown) => {
          const final = error instanceof UnrecoverableError || attempts === 1;
          const backoff = { ...jobOptions.backoff, delay: 2 * backoffMs };
          if (!final) await leave(chunk, { attempts: attempts - 1, backoff, delay: backoffMs, priority });
          events.onFailure(chunk, causeOf(error), final);
          return null;
        };
        for (const [i, chunk] of chunks.entries()) {
          // Two would work them off one behind the other, each asking for what the other has in hand.
          if (lost.has(job.id!)) return;
          // A job is named after its chunks, and those that are done are not there any more: what is left becomes another job.
          const handBack = () => leave(jobOf(chunks.slice(i)), { priority });
          if (i > 0 && isClosing) return handBack();
          const outcome = await handled(chunk, 1).catch((error: unknown) => failed(chunk, error));
          if (outcome?.kind === 'snoozed') {
            if (i > 0) return handBack();
            await snooze(outcome);
          }
          if (outcome?.kind === 'deferred') await leave(chunk, { delay: delayOf(outcome), priority });
          // Whoever takes it up after us must not ask at once for what was put off.
          if (outcome === null || outcome.kind === 'deferred')
            await job.updateData({ kind: 'batch', chunks: chunks.slice(i + 1) });
        }
      };
      const worker = connections.worker<JobData>(
        name,
        (job, token) => {
          const { data } = job;
          // A lock may have been lost while the end of a job of this name was told: that was another one.
          lost.delete(job.id!);
          if (data.kind !== 'batch') return workOne(data, job, token);
          const ended = onBatch?.(data.chunks);
          // What it leaves behind is no reason to work the batch off again.
          return workBatch(data.chunks, job).finally(() => ended?.().catch(onError));
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
      worker.on('lockRenewalFailed', (ids) => {
        for (const id of ids) lost.add(id);
      });
      worker.on('failed', (job, error) => {
        if (!job) return;
        const final = error instanceof UnrecoverableError || job.attemptsMade >= (job.opts.attempts ?? 1);
        for (const chunk of chunksOf(job.data)) events.onFailure(chunk, causeOf(error), final);
      });
      /** Resolves when nothing is in hand any more and the engine has had its time to be told. */
      const tiredOfWaiting = async () => {
        while (inHand.size > 0) await Promise.allSettled(inHand);
        for (let waited = 0; connections.isUp() && waited < GOODBYE_MS; waited += GOODBYE_STEP_MS)
          await systemClock.sleep(GOODBYE_STEP_MS);
      };
      return {
        close: async (force) => {
          isClosing = true;
          const closed = worker.close(force);
          closed.catch(onError);
          await Promise.race([closed, tiredOfWaiting()]);
        },
      };
    },
    close: () => queue.close(),
  };
}

/** What we threw, without what told the engine not to try it again. */
function causeOf(error: unknown): Error {
  return asError(error instanceof UnrecoverableError ? (error.cause ?? error) : error);
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
