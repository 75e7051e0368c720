/**
 * Keeps a bounded window of chunks in the queue while a backfill runs.
 *
 * It goes through the coins in passes. In a pass each series is read once, when its turn comes, and cut into chunks newest first,
 * a few series taking turns; the next pass begins when everything of this one has ended, so chunks of one series never overlap.
 * A pass that finds nothing to ask, but for what was given up, ends the run. What is in the window but no longer in the queue (a flush, another process that
 * did it or failed it) is left to the next pass.
 */
import { type Clock, systemClock } from '../../clock.ts';
import { chunksNewestFirst } from '../../core/chunk.ts';
import { normalize, type Span, subtract } from '../../core/span.ts';
import type { CoinGaps } from '../../store/candle/gaps.ts';
import { inTurn } from '../../store/connection/advisory-lock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { earliestSlot, knownDepth, splitAtWall } from '../limits/history-limit.ts';
import type { Walls } from '../limits/learned-limits.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import type { Patience } from '../request/outage-retry.ts';
import { type BackfillTarget, gapsOf } from './plan.ts';

export type Refill = {
  /** Resolves when a whole pass found nothing left to ask, or the signal fires. */
  run(signal: AbortSignal): Promise<void>;
  /** A chunk has ended, however: its place in the window is free. */
  ended(job: ChunkJob, how: 'done' | 'failed'): void;
  /** Is it in the window now? */
  has(job: ChunkJob): boolean;
  /** In the window now. */
  inFlight(): readonly ChunkJob[];
};

export type RefillDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: Pick<ChunkQueue, 'add' | 'ids' | 'unpause'>;
  readonly target: BackfillTarget;
  readonly backfillId: number;
  /** Whose chunks are taken first, where several keep theirs in the queue. */
  readonly priority: number;
  readonly askedSince: number;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly walls: Pick<Walls, 'of'>;
  /** For a database that is away, and the queue in it. */
  readonly patience: Patience;
  /** Chunks in the queue at most. */
  readonly window: number;
  /** How often the window is compared with the queue at least. */
  readonly checkEveryMs: number;
  /** How many of so many chunks share a job. */
  readonly together: (chunks: number) => number;
  /** Told of a chunk that another process has done. One that was wiped or failed there, and still is missing, comes again instead. */
  readonly onGone: (job: ChunkJob) => void;
  /** Told of a chunk that is not asked again in this run although something of it is still missing. */
  readonly onGivenUp: (job: ChunkJob) => void;
};

/** A chunk that ends so often with its gap still open is given up in this run. */
const MOST_ROUNDS = 3;
/** What one process at a time does. */
const ADDING = 'adding chunks';
/** An addition takes some tens of ms. */
const TURN_LOOKS = 40;
const TURN_LOOK_MS = 50;
/** How often the window is compared with the queue at most; and at least, when a pass waits for its last chunks. */
const SOONEST_CHECK_MS = 125;
const LAST_ONES_CHECK_MS = 500;

export function createRefill(deps: RefillDeps): Refill {
  const { clock, queue, window, patience } = deps;
  const inFlight = new Map<string, ChunkJob>();
  /** Chunks of earlier passes, by id: how often they were put into the queue. */
  const rounds = new Map<string, number>();
  const givenUp = new Map<number, Span[]>();
  let retrying = false;
  /** What the queue did not have when it was looked at last. */
  let gone = new Set<string>();
  let checkMs = Math.min(2 * SOONEST_CHECK_MS, deps.checkEveryMs);
  let checkedAt = clock.now();
  /** Called when a chunk ended or the run shall stop. */
  let look: () => void = () => undefined;

  return {
    run: async (signal) => {
      const onAbort = () => look();
      signal.addEventListener('abort', onAbort);
      try {
        // A pass that was cut off begins anew, when nothing of it is under way any more.
        const wholePass = () =>
          patience(async (again) => {
            if (again) await drained(signal);
            return pass(signal);
          });
        while (!signal.aborted && (await wholePass()) > 0) await drained(signal);
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
    },
    ended: (job, how) => {
      if (how === 'failed') giveUp(job);
      if (inFlight.delete(chunkJobId(job))) look();
    },
    has: (job) => inFlight.has(chunkJobId(job)),
    inFlight: () => [...inFlight.values()],
  };

  /** Enqueues everything that is missing now, waiting for room; resolves to how many chunks that were. */
  async function pass(signal: AbortSignal): Promise<number> {
    let count = 0;
    let batch: ChunkJob[] = [];
    const flush = async () => {
      for (const job of batch) inFlight.set(chunkJobId(job), job);
      const adding = batch;
      batch = [];
      if (adding.length === 0) return;
      await patience(() => addAll(adding));
    };
    for await (const job of missingChunks()) {
      if (signal.aborted) return count;
      batch.push(job);
      count++;
      if (inFlight.size + batch.length < window) continue;
      await flush();
      // Refill when half is gone: few large additions instead of many small ones.
      await until(() => inFlight.size <= window / 2, signal);
    }
    await flush();
    return count;
  }

  /**
   * Where several share a job, the queue does not notice that another process adds the same chunks at this moment: it is waited for, but
   * not for one that hangs in the middle of it.
   */
  async function addAll(adding: readonly ChunkJob[]): Promise<void> {
    const alone = () => queue.add(adding, deps.priority);
    if (deps.together(Number.POSITIVE_INFINITY) === 1) return alone();
    const together = () => queue.add(adding, deps.priority, deps.together(adding.length));
    for (let looks = 0; looks < TURN_LOOKS; looks++) {
      if (looks > 0) await systemClock.sleep(TURN_LOOK_MS);
      if (await inTurn(deps.sql, ADDING, together)) return;
    }
    await alone();
  }

  /** A chunk of each of several series in turn: chunks of one series wait for each other when they are stored. */
  async function* missingChunks(): AsyncGenerator<ChunkJob> {
    const { target, askedSince, plan } = deps;
    const when = { now: () => clock.now(), askedSince, plan: plan.name };
    const coins = gapsOf(deps.sql, target, when, PAGE);
    const lanes: Generator<ChunkJob>[] = [];
    for (let more = true; more || lanes.length > 0; ) {
      while (more && lanes.length < window / 4) {
        const next = await coins.next();
        if (next.done) more = false;
        else if (next.value.seriesId !== null) lanes.push(chunksOf(next.value, next.value.seriesId));
      }
      const lane = lanes.shift();
      const next = lane?.next();
      if (!lane || !next || next.done) continue;
      lanes.push(lane);
      yield next.value;
    }
    // Only what is left after the first pass is worth remembering: there is little of it.
    retrying = true;
  }

  function* chunksOf({ coinId, gaps }: CoinGaps, seriesId: number): Generator<ChunkJob> {
    const { target, backfillId, askedSince, plan } = deps;
    const { quote, interval } = target;
    const toAsk = worthAsking(seriesId, gaps);
    for (const { from, to } of chunksNewestFirst(toAsk, interval, plan.candlesPerRequest)) {
      const job: ChunkJob = { kind: 'backfill', backfillId, seriesId, coinId, quote, interval, from, to, askedSince };
      const round = (rounds.get(chunkJobId(job)) ?? 0) + 1;
      if (round > MOST_ROUNDS) {
        giveUp(job);
        deps.onGivenUp(job);
        continue;
      }
      if (retrying) rounds.set(chunkJobId(job), round);
      yield job;
    }
  }

  function worthAsking(seriesId: number, gaps: readonly Span[]): readonly Span[] {
    const { interval } = deps.target;
    const earliest = earliestSlot(knownDepth(deps.walls.of(interval)), interval, clock.now());
    return splitAtWall(subtract(gaps, givenUp.get(seriesId) ?? []), earliest).within;
  }

  function giveUp({ seriesId, from, to }: ChunkJob): void {
    givenUp.set(seriesId, normalize([...(givenUp.get(seriesId) ?? []), { from, to }]));
  }

  async function drained(signal: AbortSignal): Promise<void> {
    await until(() => inFlight.size === 0, signal, LAST_ONES_CHECK_MS);
  }

  /**
   * Waits for `ready`, which each chunk that ends may bring about. Of those that end in other processes nobody tells: the queue
   * is looked at, the sooner the more of the window they take, so that it never runs dry while there is more to ask.
   */
  async function until(ready: () => boolean, signal: AbortSignal, mostMs = deps.checkEveryMs): Promise<void> {
    const isOver = () => ready() || signal.aborted;
    while (!isOver()) {
      const over = new Promise<void>((resolve) => {
        look = () => {
          if (isOver()) resolve();
        };
      });
      const idle = new AbortController();
      // A clock that was set back must not put it off.
      const everyMs = Math.min(checkMs, mostMs);
      const waitMs = Math.min(everyMs, checkedAt + everyMs - clock.now());
      await Promise.race([over, clock.sleep(Math.max(0, waitMs), idle.signal).catch(() => undefined)]);
      idle.abort();
      if (!isOver()) await reconcile();
    }
  }

  /**
   * Done by another process, failed there, or wiped: the next pass finds out what of it is still missing. Only what is gone
   * twice in a row: the end of one that ends here is told a moment after the queue has forgotten it.
   */
  async function reconcile(): Promise<void> {
    await patience(() => queue.unpause());
    const there = await patience(() => queue.ids());
    const missing = [...inFlight].filter(([id]) => !there.has(id));
    const before = gone;
    gone = new Set();
    const ended: ChunkJob[] = [];
    for (const [id, job] of missing) {
      if (!before.has(id)) gone.add(id);
      else if (inFlight.delete(id)) ended.push(job);
    }
    for (const job of await patience(() => doneOf(ended))) deps.onGone(job);
    if (gone.size > window / 8) checkMs = Math.max(SOONEST_CHECK_MS, checkMs / 2);
    else if (gone.size < window / 32) checkMs = Math.min(deps.checkEveryMs, checkMs * 2);
    checkedAt = clock.now();
  }

  /** Those of which nothing is left to ask: a queue that was wiped has forgotten what nobody has done. */
  async function doneOf(jobs: readonly ChunkJob[]): Promise<readonly ChunkJob[]> {
    if (jobs.length === 0) return jobs;
    const { target, askedSince, plan } = deps;
    const coinIds = [...new Set(jobs.map(({ coinId }) => coinId))];
    const when = { now: () => clock.now(), askedSince, plan: plan.name };
    const open = new Map<number, readonly Span[]>();
    for await (const { seriesId, gaps } of gapsOf(deps.sql, { ...target, coinIds }, when, PAGE))
      if (seriesId !== null) open.set(seriesId, worthAsking(seriesId, gaps));
    return jobs.filter(
      ({ seriesId, from, to }) => !(open.get(seriesId) ?? []).some((gap) => gap.from < to && from < gap.to),
    );
  }
}

/** Series read ahead: their gaps are re-read when their turn comes in the next page, so a small page stays fresh. */
const PAGE = 100;
