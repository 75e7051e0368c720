/**
 * Keeps the tracked series fresh: a run of the schedule plans their ages and puts the chunks whose turn it is into a queue of
 * their own, so that no backfill stands before them; a worker asks them as scheduled work.
 *
 * A turn that is taken is written down before its chunk is in the queue, and struck out when the chunk has ended. So a chunk that
 * the queue lost (a flush, a kill between the two) is found, and its turn handed back.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Keep } from '../../core/settings/retention-settings.ts';
import type { FreshnessBudget } from '../../quota/achievable-ages.ts';
import { freshnessRoom } from '../../quota/refresh-order.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { countQueued, handBack, markEnded, readQueued } from '../../store/tracking/tracked-series.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import type { Walls } from '../limits/learned-limits.ts';
import type { Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import { withoutRetry } from '../request/outage-retry.ts';
import type { RunOutcome } from '../schedule-run.ts';
import { keepTracks, type TrackedPlan, takeStale } from './freshness.ts';

export type KeepFreshDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** For these chunks only. */
  readonly queue: Pick<ChunkQueue, 'add' | 'statesOf' | 'size'>;
  readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  readonly walls: Walls;
  /** How long candles are kept: what is older is not wanted. */
  readonly keep: Keep['candles'];
  /** How many go at once through the pace of the plan; null: any number. */
  readonly perSecond: number | null;
  readonly budget: () => Promise<FreshnessBudget>;
  /** Requests that it has made since midnight UTC. */
  readonly spentToday: () => Promise<number>;
  /** When the schedule runs next, seen from an instant; an instant that has been when it never does. */
  readonly nextRun: (now: Instant) => Instant;
};

export type KeepFresh = {
  /** Rules applied, ages planned, turns taken. */
  run(): Promise<RunOutcome>;
  /** Chunks that the queue has lost are put into it again; resolves to how many there were. */
  recover(): Promise<number>;
  /** What was planned last by this process. */
  planned(): TrackedPlan | null;
};

/** In the queue at most for the time between two runs, which is half an hour with the smallest plan: what is decided later is decided better. */
const MOST_QUEUED = 10_000;
/** And no more than the pace lets through in this time; longer where the operator has it run less often. */
const QUEUED_FOR_S = 1_800;
/** A chunk that is not in the queue so long after its turn was taken is lost. */
const LOST_AFTER_MS = 20_000;
/** So many are looked for one by one; when the queue is empty, all are lost. */
const LOOKED_FOR = 200;

export function createKeepFresh(deps: KeepFreshDeps): KeepFresh {
  const { sql, clock, queue, plan, walls } = deps;
  let planned: TrackedPlan | null = null;
  /** What the queue did not have when it was looked at last. */
  let gone = new Set<number>();

  const topUp = async (): Promise<number> => {
    const now = clock.now();
    const [{ most: perDay }, spent, queued] = await Promise.all([deps.budget(), deps.spentToday(), countQueued(sql)]);
    const nextAt = deps.nextRun(now);
    const room = freshnessRoom({ perDay, spentToday: spent + queued, now, nextAt });
    const longer = Math.max(1, (nextAt - now) / 1000 / QUEUED_FOR_S);
    const perRun = Math.min(MOST_QUEUED, (deps.perSecond ?? Number.POSITIVE_INFINITY) * QUEUED_FOR_S);
    const most = Math.ceil(perRun * longer);
    const chunks = await takeStale(sql, { now, limit: Math.min(room, most - queued), plan, walls });
    await queue.add(
      chunks.map(({ seriesId, coinId, quote, interval, from, to }) => {
        return { kind: 'freshness', seriesId, coinId, quote, interval, from, to, askedSince: now } satisfies ChunkJob;
      }),
    );
    return chunks.length;
  };

  return {
    planned: () => planned,
    run: async () => {
      await walls.reload();
      const now = clock.now();
      const { candlesPerRequest } = plan;
      const { planned: requestsPerDay } = await deps.budget();
      planned = (await keepTracks({ sql, now, requestsPerDay, candlesPerRequest, walls, keep: deps.keep })).plan;
      await topUp();
      return { kind: 'done' };
    },
    recover: async () => {
      const isEmpty = (await queue.size()) === 0;
      const queued = await readQueued(sql, clock.now() - LOST_AFTER_MS, isEmpty ? MOST_QUEUED : LOOKED_FOR);
      const missing = isEmpty ? [...queued] : [];
      const asked = isEmpty ? [] : queued;
      const states = await queue.statesOf(asked.map((seriesId) => ({ kind: 'freshness', seriesId })));
      missing.push(...asked.filter((_, i) => states[i] === 'gone'));
      // Twice in a row: the end of one is written down a moment before the queue forgets it.
      const lost = missing.filter((id) => gone.has(id));
      gone = new Set(missing.filter((id) => !lost.includes(id)));
      if (lost.length === 0) return 0;
      await handBack(sql, lost);
      await topUp();
      return lost.length;
    },
  };
}

/**
 * Strikes out the turn of each chunk that has ended; what is put off waits in the queue. One that began before a wall of the plan was
 * refused as a whole, its newest end with it: the turn is handed back, and what lies within the wall is asked next time.
 */
export function withTurns(ingestChunk: IngestChunk, sql: Sql): IngestChunk {
  return async (job, options = {}) => {
    const { retry = withoutRetry } = options;
    const outcome = await ingestChunk(job, options);
    if (job.kind === 'freshness' && isOver(outcome)) await retry(() => endTurn(sql, job.seriesId, outcome));
    return outcome;
  };
}

async function endTurn(sql: Sql, seriesId: number, outcome: Outcome): Promise<void> {
  if (outcome.kind === 'refused' && outcome.reason === 'plan wall') await handBack(sql, [seriesId]);
  else await markEnded(sql, seriesId);
}

function isOver(outcome: Outcome): boolean {
  return outcome.kind === 'stored' || outcome.kind === 'refused';
}
