/** A worker of the queue of chunks: hands each chunk to its caller, and does in the queue what the outcome asks for. */
import { DelayedError, UnrecoverableError, Worker } from 'bullmq';
import { systemClock } from '../../clock.ts';
import { ConfigurationError, type Outcome, SeriesGivenUp } from '../outcome.ts';
import type { ChunkJob } from './chunk-job.ts';
import type { AnyQueue, Connections } from './queue-engine.ts';
import { QueueUnavailable } from './redis.ts';

export type WorkerEvents = {
  readonly onOutcome: (job: ChunkJob, outcome: Outcome) => void;
  /** `final`: no attempt is left, or none could help. */
  readonly onFailure: (job: ChunkJob, error: Error, final: boolean) => void;
};

export type ChunkWork = {
  readonly concurrency: number;
  /** `attempt` counts from 1. */
  readonly handle: (job: ChunkJob, attempt: number) => Promise<Outcome>;
  /** Turns an outcome's wait into real milliseconds (a test's clock may run faster). */
  readonly snoozeMs: (outcome: Extract<Outcome, { kind: 'snoozed' | 'deferred' }>) => number;
  readonly events: WorkerEvents;
};

export type ChunkWorker = {
  /** Waits for what is in flight, but not for an engine that is unavailable; with `force` it is left to the next stalled check. */
  close(force?: boolean): Promise<void>;
};

/** A snoozing queue looks again at least so often, so that a lifted hold is noticed. */
const LONGEST_SNOOZE_MS = 10_000;
/** A worker that is closed just when a snooze begins sleeps this out first. */
const SNOOZE_STEP_MS = 500;
/** How soon a worker whose engine is unavailable looks for it again. */
const LOOK_AGAIN_MS = 1_000;
/** How long an engine may take to be told that a worker leaves. */
const GOODBYE_MS = 5_000;
const GOODBYE_STEP_MS = 100;
/** A stalled chunk is harmless (it is checked before it is asked), so it may stall as often as processes die. */
const MAX_STALLED = 1_000;

/** Works on the queue `name` of these connections, of which `queue` is the other end, until it is closed. */
export function startChunkWorker(
  {
    connections,
    name,
    queue,
    lockMs,
    onError,
  }: {
    readonly connections: Connections;
    readonly name: string;
    readonly queue: Pick<AnyQueue<ChunkJob>, 'rateLimit'>;
    /** How long a dead worker's chunk stays locked. */
    readonly lockMs: number;
    /** Errors of the engine's connections; the worker reconnects by itself. */
    readonly onError: (error: Error) => void;
  },
  { concurrency, handle, snoozeMs, events }: ChunkWork,
): ChunkWorker {
  const inHand = new Set<Promise<Outcome>>();
  const worker = connections.worker<ChunkJob>(
    name,
    async (job, token) => {
      const mine = handle(job.data, job.attemptsMade + 1);
      inHand.add(mine);
      const outcome = await mine.finally(() => inHand.delete(mine)).catch(withoutRetryIfHopeless);
      events.onOutcome(job.data, outcome);
      if (outcome.kind === 'snoozed') await snooze(queue, snoozeMs(outcome));
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
    events.onFailure(job.data, causeOf(error), final);
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
}

/** Holds all workers of the queue for so long; this chunk goes back to where it was, with its attempt. */
async function snooze(queue: Pick<AnyQueue<ChunkJob>, 'rateLimit'>, ms: number): Promise<never> {
  // While the engine is unavailable nobody takes a chunk from it, and a snooze must burn no attempt.
  await queue.rateLimit(Math.ceil(Math.min(Math.max(ms, 1), LONGEST_SNOOZE_MS))).catch((error: unknown) => {
    if (!(error instanceof QueueUnavailable)) throw error;
  });
  throw Worker.RateLimitError();
}

/** Tells the engine not to try again what no attempt can help. */
function withoutRetryIfHopeless(error: unknown): never {
  if (error instanceof ConfigurationError || error instanceof SeriesGivenUp)
    throw Object.assign(new UnrecoverableError(error.message), { cause: error });
  throw error;
}

/** What the handler threw. */
function causeOf(error: Error): Error {
  return error instanceof UnrecoverableError && error.cause instanceof Error ? error.cause : error;
}
