/**
 * Keeps the tracked series fresh. A run of the schedule plans their ages, and puts the chunks that are due into their own queue, so that no backfill
 * delays them. A worker requests them as scheduled work.
 *
 * A refresh of a series is recorded before its chunk is in the queue, and cleared when the chunk has ended. So if the queue loses a chunk (a flush, a
 * kill between the two), the loss is noticed, and the series is refreshed again.
 */
import type { Clock, Instant } from '../../clock.ts';
import { HOUR } from '../../core/interval.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import type { FreshnessBudget } from '../../quota/achievable-ages.ts';
import { refreshRoom } from '../../quota/refresh-order.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  countQueued,
  markDueAgain,
  markEnded,
  readQueued,
  undoRefreshes,
} from '../../store/tracking/tracked-series.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import { dayRequestOf } from '../chunk/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import type { Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import { withoutRetry } from '../request/outage-retry.ts';
import type { RunOutcome } from '../schedule-run.ts';
import { refreshTracks, takeDueChunks } from './freshness.ts';

type KeepFreshDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** A queue for these chunks only. */
  readonly queue: Pick<ChunkQueue, 'add' | 'statesOf' | 'size'>;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly historyLimits: LearnedLimits;
  /** How long candles are kept; older ones are not requested. */
  readonly keep: Retention['candles'];
  /** Requests a second that the plan allows; null: any number. */
  readonly perSecond: number | null;
  readonly budget: () => Promise<FreshnessBudget>;
  /** Requests for freshness since midnight UTC. */
  readonly spentToday: () => Promise<number>;
  /** The next run of the schedule after an instant; if the schedule never runs, an earlier instant. */
  readonly nextRun: (now: Instant) => Instant;
  /** The longest time between two runs. */
  readonly tickMs: number;
};

export type KeepFresh = {
  /** Applies the rules, plans the ages, and puts the chunks that are due into the queue. */
  run(): Promise<RunOutcome>;
  /** Puts chunks that the queue has lost into it again; resolves to their number. */
  recover(): Promise<number>;
};

/**
 * The queue holds at most the chunks of half an hour, or of the time between two runs if that is longer. While the queue is short, the next run
 * chooses by more recent ages.
 */
const MOST_QUEUED = 10_000;
/** The queue also holds at most as many chunks as the plan's rate allows in this time; more if the schedule is configured to run less often. */
const QUEUED_FOR_S = 1_800;
/** A chunk is lost if it is not in the queue this long after its refresh was recorded. */
const LOST_AFTER_MS = 20_000;
/** The most chunks that are looked up one by one. If the queue is empty, all of them are lost. */
const LOOKED_FOR = 200;

export function createKeepFresh(deps: KeepFreshDeps): KeepFresh {
  const { sql, clock, queue, plan, historyLimits } = deps;
  /** Series whose chunk was not in the queue at the last look. */
  let gone = new Set<number>();

  const topUp = async (): Promise<number> => {
    const now = clock.now();
    const [budget, spent, queued] = await Promise.all([deps.budget(), deps.spentToday(), countQueued(sql)]);
    const nextAt = deps.nextRun(now);
    const longer = Math.max(1, (nextAt - now) / 1000 / QUEUED_FOR_S);
    const perRun = Math.min(MOST_QUEUED, (deps.perSecond ?? Number.POSITIVE_INFINITY) * QUEUED_FOR_S);
    const room = refreshRoom({
      most: budget.most,
      left: (budget.left ?? Number.POSITIVE_INFINITY) - queued,
      atOnce: Math.ceil(perRun * longer) - queued,
      spentToday: spent + queued,
      coming: budget.coming,
    });
    const chunks = await takeDueChunks(sql, { now, room, tickMs: deps.tickMs, plan, historyLimits });
    await queue.add(
      chunks.map(({ seriesId, coinId, quote, interval, from, to }) => {
        return { kind: 'freshness', seriesId, coinId, quote, interval, from, to, askedSince: now } satisfies ChunkJob;
      }),
    );
    return chunks.length;
  };

  return {
    run: async () => {
      await historyLimits.reload();
      const now = clock.now();
      const { candlesPerRequest } = plan;
      const budget = await deps.budget();
      const { keep, tickMs } = deps;
      await refreshTracks({
        sql,
        now,
        requestsPerDay: budget.planned,
        mostPerDay: budget.mostPerDay,
        candlesPerRequest,
        historyLimits,
        keep,
        tickMs,
      });
      await topUp();
      return { kind: 'done' };
    },
    recover: async () => {
      const isEmpty = (await queue.size()) === 0;
      const queued = await readQueued(sql, clock.now() - LOST_AFTER_MS, isEmpty ? MOST_QUEUED : LOOKED_FOR);
      const states = isEmpty ? [] : await queue.statesOf(queued.map((seriesId) => ({ kind: 'freshness', seriesId })));
      const missing = queued.filter((_, i) => isEmpty || states[i] === 'gone');
      // A chunk counts as lost when it is missing twice in a row: its end is recorded a moment before the queue removes it.
      const lost = missing.filter((id) => gone.has(id));
      gone = new Set(missing.filter((id) => !gone.has(id)));
      if (lost.length === 0) return 0;
      await undoRefreshes(sql, lost);
      await topUp();
      return lost.length;
    },
  };
}

/**
 * Clears the refresh of each chunk that has ended; a deferred chunk waits in the queue. A chunk that began before the history limit was refused
 * completely, including its newest candles: the series is refreshed again, for the part within the limit.
 */
export function withEndOfRefresh(ingestChunk: IngestChunk, sql: Sql): IngestChunk {
  return async (job, options = {}) => {
    const { retry = withoutRetry } = options;
    const outcome = await ingestChunk(job, options);
    const isOver = outcome.kind === 'stored' || outcome.kind === 'refused';
    if (job.kind === 'freshness' && isOver) await retry(() => endRefresh(sql, job.seriesId, outcome));
    return outcome;
  };
}

/** A day that can be fetched only once is requested again after this time. */
const FAILED_DAY_AGAIN_MS = 2 * HOUR;

/** The refresh of a series has failed for good. The series is not due before its time, unless what it requested would be gone by then. */
export async function endFailedRefresh(
  { sql, clock, historyLimits }: Pick<KeepFreshDeps, 'sql' | 'clock' | 'historyLimits'>,
  job: ChunkJob,
): Promise<void> {
  const now = clock.now();
  const day = dayRequestOf(job, historyLimits, now);
  if (day === null) await markEnded(sql, job.seriesId);
  else await markDueAgain(sql, job.seriesId, now + FAILED_DAY_AGAIN_MS);
}

async function endRefresh(sql: Sql, seriesId: number, outcome: Outcome): Promise<void> {
  if (outcome.kind === 'refused' && outcome.reason === 'history limit') await undoRefreshes(sql, [seriesId]);
  else if (outcome.kind === 'stored' && outcome.againAt !== undefined)
    await markDueAgain(sql, seriesId, outcome.againAt);
  else await markEnded(sql, seriesId);
}
