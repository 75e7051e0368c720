/** A backfill from the first chunk to the report: what it wants is written down, then asked for until nothing worth a request is missing. */
import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../../clock.ts';
import { chunksNewestFirst } from '../../core/chunk.ts';
import type { Span } from '../../core/span.ts';
import { type RefusalReason, withdrawRefusals } from '../../store/candle/refusal.ts';
import { type SeriesAsked, wantSeries } from '../../store/candle/series.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { type BackfillTotals, backfillTotals, finishBackfill, startBackfill } from '../../store/work/backfill.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import { withStepBack } from '../chunk/series-circuit-breaker.ts';
import { oneAtATime } from '../chunk/single-flight.ts';
import { earliestSlot, splitAtWall } from '../limits/history-limit.ts';
import type { Walls } from '../limits/learned-limits.ts';
import { Misconfigured, type Outcome, UpstreamTrouble } from '../outcome.ts';
import { togetherAt } from '../queue/chunk-batch.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import { awayReason, createPatience, DATABASE_AWAY, QUEUE_AWAY } from '../request/outage-retry.ts';
import type { TakeTurns } from '../turns-ahead.ts';
import { keepBeating, withRevival } from './heartbeat.ts';
import { type BackfillPlan, type BackfillTarget, gapsOf } from './plan.ts';
import { type BackfillEnd, type BackfillProgress, type BackfillSeen, createTally } from './progress.ts';
import { createRefill } from './refill.ts';

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
  readonly takeTurns: TakeTurns;
  readonly walls: Walls;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  /** Requests a second at most; null: no pace. */
  readonly perSecond: number | null;
  /** `host:pid`. */
  readonly owner: string;
  /** Does what can be done about a database that is away, if anything can; called now and then while it is. What it rejects with ends the run. */
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
/** A probe that meets trouble is tried again: without its answer, as many are refused as are under way at once. */
const MOST_PROBES = 5;

export async function runBackfill(deps: BackfillDeps, options: BackfillOptions): Promise<BackfillRun> {
  const { sql, clock, queue, walls } = deps;
  const { target, signal, startedAt } = options;
  const { claimedId } = options;
  const isClaimed = claimedId !== undefined;
  const id = claimedId ?? (await start(deps, options));

  const stop = new AbortController();
  // Every worker that waits for its turn listens; that is no leak.
  setMaxListeners(0, stop.signal);
  let end: BackfillEnd = { kind: 'done' };
  const stopWith = (how: BackfillEnd) => {
    if (stop.signal.aborted) return;
    end = how;
    stop.abort();
  };
  if (signal.aborted) stopWith({ kind: 'interrupted' });
  const onSignal = () => stopWith({ kind: 'interrupted' });
  signal.addEventListener('abort', onSignal, { once: true });

  const tally = createTally({ ...options, backfillId: id }, stopWith);
  let failure: unknown = null;
  let isQueueAway = false;
  const patience = createPatience({
    clock,
    signal: stop.signal,
    onAway: (reason, until) => {
      tally.away(reason, until, clock.now());
      if (reason === QUEUE_AWAY) isQueueAway = true;
      if (reason !== DATABASE_AWAY) return;
      deps.bringBack?.().catch((error: unknown) => {
        failure ??= error;
        stop.abort();
      });
    },
    onBack: (reason) => {
      if (reason === QUEUE_AWAY) isQueueAway = false;
      tally.back(reason);
    },
  });
  /** A queue that cannot be reached keeps chunks that nobody will ask for: the run they are for has ended. It is not waited for. */
  const tidy = async (work: () => Promise<void>) => {
    if (isQueueAway) return;
    await work().catch((error: unknown) => {
      isQueueAway = awayReason(error) === QUEUE_AWAY;
    });
  };
  const alive = { sql, clock, id, signal: stop.signal };
  const own = isClaimed ? deps.ingestChunk : withRevival(deps.ingestChunk, alive);
  const ingestChunk = oneAtATime(withStepBack(own, clock));
  const heartbeat = isClaimed ? null : keepBeating(sql, clock, id, stop.signal);
  const refill = createRefill({
    sql,
    clock,
    queue,
    target,
    backfillId: id,
    priority: options.priority ?? 0,
    askedSince: startedAt,
    plan: deps.plan,
    walls,
    patience,
    // Few large additions: each costs the queue on Postgres two temporary tables.
    window: Math.max(options.window ?? 256, options.concurrency * 16),
    checkEveryMs: CHECK_EVERY_MS,
    together: (chunks) => togetherAt(deps.perSecond, chunks, options.concurrency),
    onGone: () => tally.gone(),
    onGivenUp: (job) => tally.fail(job, new Error('ended several times with slots still not answered')),
  });
  try {
    if (options.planned.probe) await patience(() => probeWall(id));
    const realMs = deps.realMs ?? ((ms) => ms);
    const worker = queue.work({
      concurrency: options.concurrency,
      onBatch: deps.takeTurns,
      handle: (job, attempt) => ingestChunk(job, { attempt, signal: stop.signal, patience }),
      snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
      events: {
        onOutcome: (job, outcome) => {
          // A chunk in our window counts as ours, whoever put it into the queue first.
          if (refill.has(job)) tally.count(job, outcome, clock.now());
          if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') refill.ended(job, 'done');
        },
        onFailure: (job, error, final) => {
          if (error instanceof Misconfigured) stopWith({ kind: 'misconfigured', message: error.message });
          if (!final && error instanceof UpstreamTrouble && refill.has(job)) tally.trouble(clock.now());
          if (!final) return;
          if (refill.has(job) && !stop.signal.aborted) tally.fail(job, error);
          refill.ended(job, 'failed');
        },
      },
    });
    try {
      await refill.run(stop.signal);
    } finally {
      // First what nobody has begun, so that nobody begins it; then what was put back while the rest was finishing.
      await tidy(() => queue.remove(refill.inFlight()));
      await worker.close();
      await tidy(() => handedBack(queue, clock, refill.inFlight()));
    }
  } catch (error) {
    // What an ended run could no longer ask of a database or a queue that is away is not why it ended.
    if (!(end.kind !== 'done' && awayReason(error) !== null)) failure ??= error;
  } finally {
    signal.removeEventListener('abort', onSignal);
    stop.abort();
    await heartbeat;
  }
  if (failure !== null) {
    if (!isClaimed) await finishBackfill(sql, id, 'failed', clock.now()).catch(() => undefined);
    throw failure;
  }
  const ended = end as BackfillEnd;
  const totals = await settle(ended).catch((error: unknown) => {
    // It still says that it is running: the next run finds that its owner is gone.
    if (!isDatabaseAway(error)) throw error;
    return null;
  });
  if (totals !== null) tally.settle(totals);
  const { refused, failed } = tally;
  return { id, end: ended, startedAt, tookMs: clock.now() - startedAt, totals, seen: tally.seen(), refused, failed };

  async function settle(how: BackfillEnd): Promise<BackfillTotals> {
    // A key that was revoked or an address that went astray says nothing about the series it was met at.
    await withdrawRefusals(sql, id, how.kind === 'misconfigured');
    if (!isClaimed) await finishBackfill(sql, id, how.kind === 'misconfigured' ? 'failed' : how.kind, clock.now());
    return backfillTotals(sql, id);
  }

  /** Sends the newest chunk that begins beyond where a wall is expected, alone: its answer tells about all others. */
  async function probeWall(backfillId: number): Promise<void> {
    const { quote, interval } = target;
    const wall = walls.of(interval);
    if (wall.kind !== 'documented') return;
    const when = { now: () => clock.now(), askedSince: startedAt, plan: deps.plan.name };
    for await (const coin of gapsOf(sql, target, when)) {
      const { beyond } = splitAtWall(coin.gaps, earliestSlot(wall.depthMs, interval, clock.now()));
      const oldest = beyond.at(-1);
      if (oldest === undefined || coin.seriesId === null) continue;
      for (const { from, to } of chunksNewestFirst(coin.gaps, interval, deps.plan.candlesPerRequest)) {
        if (from >= oldest.to) continue;
        const job: ChunkJob = {
          kind: 'backfill',
          backfillId,
          seriesId: coin.seriesId,
          coinId: coin.coinId,
          quote,
          interval,
          from,
          to,
          askedSince: startedAt,
        };
        return probe(job);
      }
    }
  }

  async function probe(job: ChunkJob): Promise<void> {
    for (let attempt = 1; !stop.signal.aborted; ) {
      let outcome: Outcome;
      try {
        outcome = await deps.ingestChunk(job, { attempt, signal: stop.signal, patience });
      } catch (error) {
        if (error instanceof Misconfigured) return stopWith({ kind: 'misconfigured', message: error.message });
        if (++attempt > MOST_PROBES) return; // The queue's attempts at this chunk will tell.
        await clock.sleep(1_000 * 2 ** attempt, stop.signal).catch(() => undefined);
        continue;
      }
      tally.count(job, outcome, clock.now());
      if (outcome.kind !== 'snoozed' && outcome.kind !== 'deferred') return;
      await clock.sleep(outcome.until - clock.now(), stop.signal).catch(() => undefined);
    }
  }
}

/** Writes down what is wanted, and that it is under way. */
async function start({ sql, owner }: BackfillDeps, options: BackfillOptions) {
  const { target, spec, planned, startedAt, requestedBy = null } = options;
  const asked: SeriesAsked = { ...target, priority: 0 };
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
