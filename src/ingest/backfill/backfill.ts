/** Runs a backfill: records what is wanted, then sends requests until nothing is left to fetch. */
import type { Clock } from '../../clock.ts';
import { settledUntil } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import {
  type BackfillState,
  type BackfillTotals,
  backfillTotals,
  finishBackfill,
} from '../../store/backfill/backfill.ts';
import { type RefusalReason, withdrawRefusals } from '../../store/candle/refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isDatabaseUnavailable, isDiskFull } from '../../store/connection/database-unavailable.ts';
import { type RemainingSlots, readRemaining } from '../../views/operations/remaining-slots.ts';
import { expectedDepth } from '../limits/history-limit.ts';
import { lastDayOf } from '../limits/last-day.ts';
import { ConfigurationError, type Outcome, UpstreamError } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import type { WorkerEvents } from '../queue/chunk-worker.ts';
import {
  createOutageRetry,
  DATABASE_IS_UNAVAILABLE,
  outageReason,
  QUEUE_IS_UNAVAILABLE,
} from '../request/outage-retry.ts';
import type { Session } from '../session.ts';
import { renewRunLease, withRevival } from './heartbeat.ts';
import { createOwnChunks, type OwnChunks } from './own-chunks.ts';
import { probeHistoryLimit } from './probe-history-limit.ts';
import { type BackfillEnd, type BackfillProgress, type BackfillSeen, endOf, ProgressTracker } from './progress.ts';
import { createRefill, type Refill } from './refill.ts';
import { type RunState, readPlaces, returnChunks } from './run-chunks.ts';
import { createRunEnding, type RunEnding } from './run-ending.ts';
import { type CommandStart, startCommand } from './start.ts';
import { type Verdict, verdictOf } from './verdict.ts';

export type BackfillRun = {
  readonly id: number;
  readonly end: BackfillEnd;
  readonly tookMs: number;
  /**
   * The totals of `ops.fetch` at the end, including requests that other processes sent for this backfill; null if the database was unavailable.
   * After an interruption another process may still store a chunk that it had begun.
   */
  readonly totals: BackfillTotals | null;
  /** What this process counted; used when there are no totals. */
  readonly seen: BackfillSeen;
  /** Refused chunks by reason, with one of the messages. */
  readonly refused: ReadonlyMap<RefusalReason, { readonly chunks: number; readonly message: string }>;
  /** Chunks that failed in all attempts, with the reason. */
  readonly failed: readonly { readonly coinId: string; readonly span: Span; readonly message: string }[];
  /** What is left of the target; null if the database was unavailable at the end. Slots too young when the run began count as too young. */
  readonly left: readonly RemainingSlots[] | null;
  /** True when slots were left to backfills before this one, which own them. */
  readonly leftSlotsToOthers: boolean;
};

type BackfillDeps = Pick<Session, 'ingestChunk' | 'circuitBreaker' | 'historyLimits'> & {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: ChunkQueue;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  /** `host:pid`. */
  readonly owner: string;
  /** Tries to restart an unavailable database, where possible. Called repeatedly during the outage. If it rejects, the run ends with that error. */
  readonly restartDatabase?: () => Promise<void>;
  /** Converts milliseconds of a test's clock, which may run faster, into real ones. */
  readonly realMs?: (ms: number) => number;
};

/** For a claimed backfill, the request of the user is already recorded. */
export type BackfillOptions = CommandStart & {
  /** The id of a backfill that a service has claimed: the caller renews its lease and records how it ended. */
  readonly claimedId?: number;
  /** Higher is more urgent. Default: 0. */
  readonly priority?: number;
  readonly concurrency: number;
  /** The most chunks in the queue. Default: enough for other processes that work on them as well. */
  readonly window?: number;
  /** A longer wait ends the run. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BackfillProgress) => void;
  /** Called with a function that reads the state of the run. */
  readonly onBegun?: (readState: () => Promise<RunState>) => void;
};

const CHECK_EVERY_MS = 2_000;
/** The queue never waits longer than this before a retry. */
const LONGEST_RETRY_MS = 4 * 60_000;
type Run = {
  readonly id: number;
  readonly ending: RunEnding;
  readonly tracker: ProgressTracker;
  /** The chunks of this run that the queue holds. */
  inFlight: () => readonly ChunkJob[];
};

/** Resolves when the run has ended, even if it was stopped or interrupted. @throws an unexpected error, or the one that `restartDatabase` rejects with. */
export async function runBackfill(deps: BackfillDeps, options: BackfillOptions): Promise<BackfillRun> {
  const { sql, clock } = deps;
  const { startedAt, claimedId } = options;
  const isClaimed = claimedId !== undefined;
  const id = claimedId ?? (await startCommand(deps, options));
  const ending = createRunEnding(options.signal);
  const tracker = new ProgressTracker({ ...options, backfillId: id }, ending.stopWith);
  const run: Run = { id, ending, tracker, inFlight: () => [] };
  const readState = async () => ({
    // Chunks in the queue are left, even if fewer were planned.
    leftRequests: Math.max(tracker.left(), run.inFlight().length),
    chunks: await readPlaces(deps.queue, run.inFlight()),
  });
  options.onBegun?.(readState);
  const heartbeat = isClaimed ? null : renewRunLease({ sql, clock, id, signal: ending.signal }, readState);
  let leftSlotsToOthers = false;
  try {
    leftSlotsToOthers = await fetchMissing(deps, options, run);
  } catch (error) {
    // A run that was stopped, and then met an unavailable database or queue, ended because it was stopped.
    if (ending.end().kind === 'done' || outageReason(error) === null) ending.failWith(error);
  } finally {
    ending.close();
    await heartbeat;
  }
  const failure = ending.failure();
  if (failure !== null) {
    if (!isClaimed) await finishBackfill(sql, id, 'failed', clock.now()).catch(() => undefined);
    throw failure;
  }
  const end = ending.end();
  const { refused, failed } = tracker;
  const settled = await settle(deps, options, { id, end, failed });
  if (settled !== null) tracker.settle(settled.totals);
  const { totals, left } = settled ?? { totals: null, left: null };
  const tookMs = clock.now() - startedAt;
  return {
    id,
    end,
    tookMs,
    totals,
    seen: tracker.seen(),
    refused,
    failed,
    left,
    leftSlotsToOthers,
  };
}

/** Fetches what is missing, until nothing is left to fetch or the run ends. Resolves to whether slots were left to other backfills. */
async function fetchMissing(deps: BackfillDeps, options: BackfillOptions, run: Run): Promise<boolean> {
  const { sql, clock, queue, plan, historyLimits, realMs = (ms) => ms } = deps;
  const { target, concurrency, startedAt } = options;
  const { id, ending, tracker } = run;
  const { signal } = ending;
  const isClaimed = options.claimedId !== undefined;
  const { retry, tidy } = createRunRetry(deps, run, isClaimed);
  // A command requests everything that the user named: it comes before the backfills of the service, so it has no place among them.
  const place = options.claimedId === undefined ? undefined : { id, priority: options.priority ?? 0 };
  const asking = { sql, clock, target, backfillId: id, requestedSince: startedAt, plan, historyLimits, place };
  if (options.planned.probe) {
    const probing = {
      ...asking,
      signal,
      ingest: (job: ChunkJob, attempt: number) => deps.ingestChunk(job, { attempt, signal, retry }),
      onOutcome: (job: ChunkJob, outcome: Outcome) => {
        if (historyLimits.of(target.interval).kind === 'open') tracker.planMore(options.planned.costIfOpen.requests);
        tracker.count(job, outcome, clock.now());
      },
      onConfigurationError: (error: ConfigurationError) => ending.stopWith(endOf(error)),
    };
    await retry(() => probeHistoryLimit(probing));
  }
  const own = createOwnChunks(clock);
  const refill = createRefill({
    ...asking,
    queue,
    priority: options.priority ?? 0,
    retry,
    // A large window, so that additions are few and large: each costs the queue on Postgres two temporary tables.
    window: options.window ?? Math.max(256, concurrency * 16),
    checkEveryMs: CHECK_EVERY_MS,
    onGone: () => tracker.countElsewhere(),
    onDueAgain: (at) => tracker.dueAgain(at),
    isOwn: own.has,
    onHeldElsewhere: (since) => tracker.heldElsewhere(since, clock.now()),
    onGivenUp: (job) => tracker.fail(job, new Error('ended several times with slots still not answered')),
  });
  run.inFlight = refill.inFlight;
  const alive = isClaimed ? deps.ingestChunk : withRevival(deps.ingestChunk, { sql, clock, id, signal });
  const ingestChunk = deps.circuitBreaker(alive);
  const worker = queue.work({
    concurrency,
    handle: (job, attempt) => {
      own.begun(job);
      return ingestChunk(job, { attempt, signal, retry });
    },
    snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
    now: () => clock.now(),
    events: workerEvents(clock, run, refill, own),
  });
  try {
    await refill.run(signal);
    return refill.leftSlotsToOthers();
  } finally {
    // First removes the chunks that no worker has begun, then those that were given back while the others finished.
    await tidy(() => queue.remove(refill.inFlight()));
    await worker.close();
    await tidy(() => returnChunks(queue, clock, refill.inFlight()));
  }
}

/** `retry` waits for a database or a queue that is unavailable, and reports it. `tidy` does the last work of a run, and does not wait. */
function createRunRetry({ clock, restartDatabase }: BackfillDeps, { ending, tracker }: Run, isClaimed: boolean) {
  let isQueueUnavailable = false;
  const retry = createOutageRetry({
    clock,
    signal: ending.signal,
    onOutage: (reason, until, error) => {
      // When no answer can be stored, a command sends no further request. A service waits: its disk may get room meanwhile.
      if (!isClaimed && isDiskFull(error)) return ending.failWith(error);
      tracker.outageBegan(reason, until, clock.now());
      if (reason === QUEUE_IS_UNAVAILABLE) isQueueUnavailable = true;
      if (reason === DATABASE_IS_UNAVAILABLE) restartDatabase?.().catch(ending.failWith);
    },
    onRecovery: (reason) => {
      if (reason === QUEUE_IS_UNAVAILABLE) isQueueUnavailable = false;
      tracker.outageEnded(reason);
    },
  });
  /** Chunks that stay in an unreachable queue do no harm: a worker drops them, because their run has ended. */
  const tidy = async (work: () => Promise<void>) => {
    if (isQueueUnavailable) return;
    await work().catch((error: unknown) => {
      isQueueUnavailable = outageReason(error) === QUEUE_IS_UNAVAILABLE;
    });
  };
  return { retry, tidy };
}

/** A chunk in this window counts for this run, even if another process put it into the queue first. */
function workerEvents(clock: Clock, { ending, tracker }: Run, refill: Refill, own: OwnChunks): WorkerEvents {
  return {
    onOutcome: (job, outcome) => {
      if (outcome.kind === 'deferred') own.waits(job, outcome.until);
      else own.left(job);
      // A snooze holds the whole queue, this run's chunks included, even if the chunk is of another backfill.
      if (refill.has(job) || outcome.kind === 'snoozed') tracker.count(job, outcome, clock.now());
      if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') refill.ended(job, 'done');
    },
    onFailure: (job, error, final) => {
      if (final) own.left(job);
      else own.waits(job, clock.now() + LONGEST_RETRY_MS);
      if (error instanceof ConfigurationError) ending.stopWith(endOf(error));
      if (!final && error instanceof UpstreamError && refill.has(job)) tracker.retrying(clock.now());
      if (!final) return;
      if (refill.has(job) && !ending.signal.aborted) tracker.fail(job, error);
      refill.ended(job, 'failed');
    },
  };
}

/** The state of a command's backfill. */
const STATE_AFTER = {
  complete: 'done',
  'work left': 'stopped',
  lacking: 'failed',
  misconfigured: 'failed',
  interrupted: 'interrupted',
} as const satisfies Record<Verdict, BackfillState>;

/**
 * Records how the run ended, and reads what it did and what it left. Null if the database is unavailable: there the run still counts as running, and
 * the next run ends it when its lease has expired.
 */
async function settle(
  { sql, clock, historyLimits }: BackfillDeps,
  { target, startedAt, claimedId }: BackfillOptions,
  { id, end, failed }: Pick<BackfillRun, 'id' | 'end' | 'failed'>,
): Promise<{ readonly totals: BackfillTotals; readonly left: readonly RemainingSlots[] } | null> {
  try {
    // The upstream refused these series because of a revoked key or a wrong address: that says nothing about the series.
    await withdrawRefusals(sql, id, end.kind === 'configurationError');
    const { interval } = target;
    const openFrom = lastDayOf(expectedDepth(historyLimits.of(interval)), interval, startedAt)?.to ?? null;
    const left = await readRemaining(sql, {
      ...target,
      settledUntil: settledUntil(startedAt, interval),
      openFrom,
      failed,
    });
    if (claimedId === undefined) await finishBackfill(sql, id, STATE_AFTER[verdictOf([{ end, left }])], clock.now());
    return { totals: await backfillTotals(sql, id), left };
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    return null;
  }
}
