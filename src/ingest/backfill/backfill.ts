/** A backfill from the first chunk to the report: what it wants is written down, then asked for until nothing worth a request is missing. */
import type { Clock, Instant } from '../../clock.ts';
import type { Span } from '../../core/span.ts';
import { type RefusalReason, withdrawRefusals } from '../../store/candle/refusal.ts';
import { type WantedSeries, wantSeries } from '../../store/candle/series.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { type BackfillTotals, backfillTotals, finishBackfill, startBackfill } from '../../store/work/backfill.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import { withCircuitBreaker } from '../chunk/series-circuit-breaker.ts';
import { singleFlight } from '../chunk/single-flight.ts';
import type { Walls } from '../limits/learned-limits.ts';
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
import { keepBeating, withRevival } from './heartbeat.ts';
import type { BackfillPlan, BackfillTarget } from './plan.ts';
import { probeHistoryLimit } from './probe-history-limit.ts';
import { type BackfillEnd, type BackfillProgress, type BackfillSeen, createTally, type Tally } from './progress.ts';
import { createRefill, type Refill } from './refill.ts';
import { createRunEnding, type RunEnding } from './run-ending.ts';

export type BackfillRun = {
  readonly id: number;
  readonly end: BackfillEnd;
  readonly startedAt: Instant;
  readonly tookMs: number;
  /** What `ops.fetch` has of it, whoever made its requests; null when the database was away at the end. */
  readonly totals: BackfillTotals | null;
  /** What this process saw, for want of anything better. */
  readonly seen: BackfillSeen;
  /** Refused chunks by reason, with one of the messages. */
  readonly refused: ReadonlyMap<RefusalReason, { readonly chunks: number; readonly message: string }>;
  /** Chunks given up after all attempts, with why. */
  readonly failed: readonly { readonly coinId: string; readonly span: Span; readonly message: string }[];
};

export type BackfillDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: ChunkQueue;
  readonly ingestChunk: IngestChunk;
  readonly walls: Walls;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  /** `host:pid`. */
  readonly owner: string;
  /** Does what can be done about a database that is unavailable, if anything can; called now and then while it is. What it rejects with ends the run. */
  readonly bringBack?: () => Promise<void>;
  /** A test's clock may run faster than the machine's: how long `ms` of it are in real milliseconds. */
  readonly realMs?: (ms: number) => number;
};

export type BackfillOptions = {
  /** A backfill that is recorded and running already: whoever claimed it gives its signs of life and says how it ended. */
  readonly claimedId?: number;
  /** Default: 0, as of one of the service that was given none. */
  readonly priority?: number;
  readonly target: BackfillTarget;
  /** As it was asked for; kept in `ops.backfill` (of one that is claimed it is there already). */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Who wants it, `user@host`; of one that is claimed it is there already. */
  readonly requestedBy?: string;
  readonly planned: BackfillPlan;
  readonly startedAt: Instant;
  readonly concurrency: number;
  /** Chunks in the queue at least: more where other processes work them off, too. */
  readonly window?: number;
  /** Longer waits than this end the run. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BackfillProgress) => void;
};

const CHECK_EVERY_MS = 2_000;
/** How long a run that ends waits for another process to finish its chunks: a request or a turn is rarely longer. */
const LOOKS = 20;
const LOOK_MS = 250;

type Run = { readonly id: number; readonly ending: RunEnding; readonly tally: Tally };

/** Resolves however the run ended. @throws what was no reason to end it: an error that nobody expected, or what `bringBack` rejects with. */
export async function runBackfill(deps: BackfillDeps, options: BackfillOptions): Promise<BackfillRun> {
  const { sql, clock } = deps;
  const { startedAt, claimedId } = options;
  const isClaimed = claimedId !== undefined;
  const id = claimedId ?? (await start(deps, options));
  const ending = createRunEnding(options.signal);
  const tally = createTally({ ...options, backfillId: id }, ending.stopWith);
  const heartbeat = isClaimed ? null : keepBeating(sql, clock, id, ending.signal);
  try {
    await fetchMissing(deps, options, { id, ending, tally });
  } catch (error) {
    // What an ended run could no longer ask of a database or a queue that is unavailable is not why it ended.
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
  const totals = await settle(deps, id, end, isClaimed);
  if (totals !== null) tally.settle(totals);
  const { refused, failed } = tally;
  return { id, end, startedAt, tookMs: clock.now() - startedAt, totals, seen: tally.seen(), refused, failed };
}

/** Writes down what is wanted, and that it is under way. */
async function start({ sql, owner }: BackfillDeps, options: BackfillOptions) {
  const { target, spec, planned, startedAt, requestedBy = null } = options;
  const asked: WantedSeries = { ...target, priority: 0 };
  await wantSeries(sql, asked);
  return startBackfill(sql, {
    spec,
    span: target.span,
    interval: target.interval,
    quote: target.quote,
    plannedRequests: planned.cost.requests,
    owner,
    requestedBy,
    requestedAt: startedAt,
    startedAt,
  });
}

/** Asks for all that is missing, until nothing worth a request is left or the run ends. */
async function fetchMissing(deps: BackfillDeps, options: BackfillOptions, run: Run): Promise<void> {
  const { sql, clock, queue, plan, walls, realMs = (ms) => ms } = deps;
  const { target, concurrency, startedAt } = options;
  const { id, ending, tally } = run;
  const { signal } = ending;
  const { retry, tidy } = createRunRetry(deps, run);
  const asking = { sql, clock, target, backfillId: id, askedSince: startedAt, plan, walls };
  if (options.planned.probe) {
    const probing = {
      ...asking,
      signal,
      ingest: (job: ChunkJob, attempt: number) => deps.ingestChunk(job, { attempt, signal, retry }),
      onOutcome: (job: ChunkJob, outcome: Outcome) => tally.count(job, outcome, clock.now()),
      onConfigurationError: (message: string) => ending.stopWith({ kind: 'misconfigured', message }),
    };
    await retry(() => probeHistoryLimit(probing));
  }
  const refill = createRefill({
    ...asking,
    queue,
    priority: options.priority ?? 0,
    retry,
    // Few large additions: each costs the queue on Postgres two temporary tables.
    window: Math.max(options.window ?? 256, concurrency * 16),
    checkEveryMs: CHECK_EVERY_MS,
    onGone: () => tally.gone(),
    onGivenUp: (job) => tally.fail(job, new Error('ended several times with slots still not answered')),
  });
  const isClaimed = options.claimedId !== undefined;
  const own = isClaimed ? deps.ingestChunk : withRevival(deps.ingestChunk, { sql, clock, id, signal });
  const ingestChunk = singleFlight(withCircuitBreaker(own, clock));
  const worker = queue.work({
    concurrency,
    handle: (job, attempt) => ingestChunk(job, { attempt, signal, retry }),
    snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
    events: workerEvents(clock, run, refill),
  });
  try {
    await refill.run(signal);
  } finally {
    // First what nobody has begun, so that nobody begins it; then what was put back while the rest was finishing.
    await tidy(() => queue.remove(refill.inFlight()));
    await worker.close();
    await tidy(() => handedBack(queue, clock, refill.inFlight()));
  }
}

/** Sits out a database or a queue that is unavailable, and says so; `tidy` is for a run that ends. */
function createRunRetry({ clock, bringBack }: BackfillDeps, { ending, tally }: Run) {
  let isQueueUnavailable = false;
  const retry = createOutageRetry({
    clock,
    signal: ending.signal,
    onOutage: (reason, until) => {
      tally.away(reason, until, clock.now());
      if (reason === QUEUE_IS_UNAVAILABLE) isQueueUnavailable = true;
      if (reason === DATABASE_IS_UNAVAILABLE) bringBack?.().catch(ending.failWith);
    },
    onRecovery: (reason) => {
      if (reason === QUEUE_IS_UNAVAILABLE) isQueueUnavailable = false;
      tally.back(reason);
    },
  });
  /** A queue that cannot be reached keeps chunks that nobody will ask for: the run they are for has ended. It is not waited for. */
  const tidy = async (work: () => Promise<void>) => {
    if (isQueueUnavailable) return;
    await work().catch((error: unknown) => {
      isQueueUnavailable = outageReason(error) === QUEUE_IS_UNAVAILABLE;
    });
  };
  return { retry, tidy };
}

/** A chunk in our window counts as ours, whoever put it into the queue first. */
function workerEvents(clock: Clock, { ending, tally }: Run, refill: Refill): WorkerEvents {
  return {
    onOutcome: (job, outcome) => {
      if (refill.has(job)) tally.count(job, outcome, clock.now());
      if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') refill.ended(job, 'done');
    },
    onFailure: (job, error, final) => {
      if (error instanceof ConfigurationError) ending.stopWith({ kind: 'misconfigured', message: error.message });
      if (!final && error instanceof UpstreamError && refill.has(job)) tally.trouble(clock.now());
      if (!final) return;
      if (refill.has(job) && !ending.signal.aborted) tally.fail(job, error);
      refill.ended(job, 'failed');
    },
  };
}

/**
 * Takes back what is not under way, and waits a little for what another process has in hand, so that what it asks for us is in our
 * report. Each look takes back first: a chunk that the other one had to put back would be begun again later.
 */
async function handedBack(queue: ChunkQueue, clock: Clock, jobs: readonly ChunkJob[]): Promise<void> {
  let left = jobs;
  for (let looks = 0; looks < LOOKS && left.length > 0; looks++) {
    if (looks > 0) await clock.sleep(LOOK_MS);
    await queue.remove(left);
    const states = await queue.statesOf(left);
    left = left.filter((_, i) => states[i] !== 'gone');
  }
}

/** Writes down how it ended. Null when the database is unavailable: it still says that it is running, and the next run finds that its owner is gone. */
async function settle(
  { sql, clock }: BackfillDeps,
  id: number,
  { kind }: BackfillEnd,
  isClaimed: boolean,
): Promise<BackfillTotals | null> {
  try {
    // A key that was revoked or an address that went astray says nothing about the series it was met at.
    await withdrawRefusals(sql, id, kind === 'misconfigured');
    if (!isClaimed) await finishBackfill(sql, id, kind === 'misconfigured' ? 'failed' : kind, clock.now());
    return await backfillTotals(sql, id);
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    return null;
  }
}
