/** A worker of the queue of chunks. It gives each chunk to its handler, and the outcome decides whether it finishes, delays or retries the job. */
import { DelayedError, UnrecoverableError, Worker } from 'bullmq';
import { type Instant, systemClock } from '../../clock.ts';
import { ConfigurationError, type Outcome, SeriesGivenUp, UpstreamError } from '../outcome.ts';
import { type ChunkJob, chunkJobId } from './chunk-job.ts';
import { type ChunkWait, numberOfRetry } from './chunk-wait.ts';
import { type AnyQueue, type Connections, ignoreMissingJob, type RunningJob } from './queue-engine.ts';
import { QueueUnavailable } from './redis.ts';

export type WorkerEvents = {
  readonly onOutcome: (job: ChunkJob, outcome: Outcome) => void;
  /** `final`: no attempt is left, or no retry can help. */
  readonly onFailure: (job: ChunkJob, error: Error, final: boolean) => void;
};

export type ChunkWork = {
  readonly concurrency: number;
  /** `attempt` counts from 1. */
  readonly handle: (job: ChunkJob, attempt: number) => Promise<Outcome>;
  /** Turns an outcome's wait into real milliseconds (a test's clock may run faster). */
  readonly snoozeMs: (outcome: Extract<Outcome, { kind: 'snoozed' | 'deferred' }>) => number;
  /** The clock of the outcomes; default: the machine's clock. */
  readonly now?: () => Instant;
  readonly events: WorkerEvents;
};

export type ChunkWorker = {
  /** Waits for the chunks in progress, but not for an unavailable engine. With `force`, other workers take those chunks as stalled. */
  close(force?: boolean): Promise<void>;
};

/** The longest snooze of the queue, so that it soon notices that a hold has ended. */
const LONGEST_SNOOZE_MS = 10_000;
/** A worker that is closed just when a snooze begins sleeps for this long first. */
const SNOOZE_STEP_MS = 500;
/** How long a closing worker waits for its engine. */
const GOODBYE_MS = 5_000;
const GOODBYE_STEP_MS = 100;

/** Works on the queue `name` of these connections until it is closed. */
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
    readonly queue: Pick<AnyQueue<ChunkJob>, 'rateLimit' | 'raisePriority'>;
    /** How long the chunk of a dead worker stays locked. */
    readonly lockMs: number;
    /** Called with errors of the engine's connections; the worker reconnects automatically. */
    readonly onError: (error: Error) => void;
  },
  { concurrency, handle, snoozeMs, now = systemClock.now, events }: ChunkWork,
): ChunkWorker {
  const inProgress = new Map<string, { readonly job: string; readonly outcome: Promise<Outcome> }>();
  /**
   * A job whose lock ended while the engine was away may come again while it is still in progress here: one request serves both. Another job with the
   * same id, such as the next refresh of a series, waits for the first one, and then finds nothing missing.
   */
  const handleOnce = async (job: ChunkJob, attempt: number): Promise<Outcome> => {
    const [id, text] = [chunkJobId(job), JSON.stringify(job)];
    for (let begun = inProgress.get(id); begun !== undefined; begun = inProgress.get(id)) {
      if (begun.job === text) return begun.outcome;
      await begun.outcome.catch(() => undefined);
    }
    const outcome = handle(job, attempt)
      .finally(() => inProgress.delete(id))
      .then((outcome) => {
        events.onOutcome(job, outcome);
        return outcome;
      });
    inProgress.set(id, { job: text, outcome });
    return outcome;
  };
  /** A retry goes before the chunks of its priority that no worker has begun: they came later. */
  const keepPlace = (job: RunningJob<ChunkJob>) =>
    ignoreMissingJob(job.changePriority({ priority: numberOfRetry(job.priority) })).catch(onError);
  const note = (job: RunningJob<ChunkJob>, wait: ChunkWait) =>
    ignoreMissingJob(job.updateProgress(wait)).catch(onError);
  const worker = connections.worker<ChunkJob>(
    name,
    async (job, token) => {
      const outcome = await handleOnce(job.data, job.attemptsMade + 1).catch(async (error: unknown) => {
        withoutUselessRetry(error);
        if (!isLastAttempt(job, 1)) await keepPlace(job);
        throw error;
      });
      if (outcome.kind === 'snoozed') await snooze(queue, snoozeMs(outcome));
      if (outcome.kind === 'deferred') {
        await Promise.all([keepPlace(job), note(job, { until: outcome.until, reason: outcome.reason })]);
        await job.moveToDelayed(systemClock.now() + Math.ceil(Math.max(snoozeMs(outcome), 1)), token);
        throw new DelayedError();
      }
    },
    { concurrency, lockMs, maximumRateLimitDelay: SNOOZE_STEP_MS },
  );
  worker.on('failed', (job, error) => {
    if (!job) return;
    const final = error instanceof UnrecoverableError || isLastAttempt(job);
    events.onFailure(job.data, causeOf(error), final);
    if (!final) void note(job, { until: now() + job.delay, reason: problemOf(error) });
  });
  // The chunk of a dead worker is a retry as well: the Postgres engine puts it behind all others.
  worker.on('stalled', (id) => void queue.raisePriority([id], numberOfRetry).catch(onError));
  /** Resolves when no chunk is in progress any more, and the engine has had time to record that. */
  const finished = async () => {
    while (inProgress.size > 0) await Promise.allSettled([...inProgress.values()].map(({ outcome }) => outcome));
    for (let waited = 0; connections.isUp() && waited < GOODBYE_MS; waited += GOODBYE_STEP_MS)
      await systemClock.sleep(GOODBYE_STEP_MS);
  };
  return {
    close: async (force) => {
      const closed = worker.close(force);
      closed.catch(onError);
      await Promise.race([closed, finished()]);
    },
  };
}

/** Holds all workers of the queue for this time. The chunk goes back to its place, and the snooze uses no attempt. */
async function snooze(queue: Pick<AnyQueue<ChunkJob>, 'rateLimit'>, ms: number): Promise<never> {
  // While the engine is unavailable, no worker can take a chunk, and a snooze must use no attempt.
  await queue.rateLimit(Math.ceil(Math.min(Math.max(ms, 1), LONGEST_SNOOZE_MS))).catch((error: unknown) => {
    if (!(error instanceof QueueUnavailable)) throw error;
  });
  throw Worker.RateLimitError();
}

/** `more`: attempts that the engine has not counted yet. */
function isLastAttempt({ attemptsMade, opts }: RunningJob<ChunkJob>, more = 0): boolean {
  return attemptsMade + more >= (opts.attempts ?? 1);
}

/** Tells the engine not to retry when no retry can help. */
function withoutUselessRetry(error: unknown): void {
  if (error instanceof ConfigurationError || error instanceof SeriesGivenUp)
    throw Object.assign(new UnrecoverableError(error.message), { cause: error });
}

/** The error that the handler threw. */
function causeOf(error: Error): Error {
  return error instanceof UnrecoverableError && error.cause instanceof Error ? error.cause : error;
}

/** What went wrong, without the name of the chunk. */
function problemOf(error: Error): string {
  return error instanceof UpstreamError ? error.problem : error.message;
}
