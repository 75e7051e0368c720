/**
 * Some months of coins that are tracked daily, on a plan whose history limit lets no daily candle become final. Virtual time, and a queue
 * in memory.
 */
import { DAY, HOUR } from '../../src/core/interval.ts';
import type { ChunkJob } from '../../src/ingest/queue/chunk-job.ts';
import { chunkJobId } from '../../src/ingest/queue/chunk-job.ts';
import { createKeepFresh, endFailedRefresh, withEndOfRefresh } from '../../src/ingest/tracking/keep-fresh.ts';
import { refreshesToday } from '../../src/quota/refresh-order.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readComingRefreshes } from '../../src/store/tracking/tracked-series.ts';
import { createWorld, type World } from '../support/world.ts';

const KEEP_ALL = { '5m': null, '15m': null, '30m': null, '1h': null, '6h': null, '12h': null, '24h': null };
/** How often the schedule runs on the free plan. */
const EVERY_MS = HOUR / 2;
const MOST_ATTEMPTS = 5;

export type TrackedDays = {
  readonly world: World;
  /** Runs the schedule every half hour, from now to this time. */
  liveUntil(end: number): Promise<void>;
  /** Requests for candles, by what was requested. */
  readonly asked: { latest: number; today: number; historical: number };
};

export async function trackDaily(options: {
  readonly startAt: number;
  readonly coins: number;
  readonly targetAgeMs: number;
  /** Requests a day that the other schedules leave. */
  readonly perDay: number;
  readonly latestTurnsAfterMs?: number;
  readonly isDown?: (now: number) => boolean;
}): Promise<TrackedDays> {
  const { startAt, coins, targetAgeMs, perDay, isDown = () => false } = options;
  const asked = { latest: 0, today: 0, historical: 0 };
  const world = await createWorld({
    startAt,
    plan: 'free',
    limits: { perDay: 1_000, perSecond: null },
    simulator: {
      seed: 11,
      coins: Math.ceil(coins * 1.5),
      unlimited: false,
      limits: { plan: 'free', overrides: { pacePerSecond: null } },
      latestTurnsAfterMs: options.latestTurnsAfterMs ?? 0,
    },
    fetch: (simulated, clock) => async (request) => {
      const what = /\/ohlcv\/(latest|today|historical)/.exec(request.url)?.[1] as keyof typeof asked | undefined;
      if (what !== undefined) asked[what]++;
      return isDown(clock.now()) ? new Response('down', { status: 503 }) : simulated(request);
    },
  });
  const { sql } = world.database;
  const { clock } = world;
  const { session } = await world.open();
  await addTracks(
    sql,
    [
      {
        tier: 'top',
        top: coins,
        interval: '24h',
        quote: 'usd',
        since: Math.floor(startAt / DAY) * DAY - DAY,
        priority: 10,
        targetAgeMs,
      } as never,
    ],
    startAt,
  );
  const waiting = new Map<string, { job: ChunkJob; at: number; attempt: number }>();
  const spentToday = async () => (await session.quota.spenders()).find(({ name }) => name === 'freshness')?.day ?? 0;
  const keep = createKeepFresh({
    sql,
    clock,
    queue: {
      add: async (jobs) => {
        for (const job of jobs) waiting.set(chunkJobId(job), { job, at: clock.now(), attempt: 1 });
      },
      statesOf: async (jobs) => jobs.map((job) => (waiting.has(chunkJobId(job)) ? 'waiting' : 'gone')) as never,
      size: async () => waiting.size,
    },
    plan: session.plan,
    historyLimits: session.historyLimits,
    keep: KEEP_ALL,
    perSecond: 10,
    budget: async () => ({
      planned: perDay * 0.9,
      most: perDay,
      mostPerDay: perDay,
      left: perDay - (await spentToday()),
      coming: refreshesToday(await readComingRefreshes(sql, { now: clock.now() }), {
        now: clock.now(),
        nextAt: clock.now() + EVERY_MS,
      }),
    }),
    spentToday,
    nextRun: (now) => now + EVERY_MS,
    tickMs: EVERY_MS,
  });
  const ingestChunk = withEndOfRefresh(session.ingestChunk, sql);

  async function work(id: string): Promise<void> {
    const { job, attempt } = waiting.get(id)!;
    try {
      const outcome = await ingestChunk(job, { attempt });
      if ('until' in outcome) waiting.set(id, { job, at: outcome.until, attempt });
      else waiting.delete(id);
    } catch {
      if (attempt < MOST_ATTEMPTS) waiting.set(id, { job, at: clock.now() + attempt * 60_000, attempt: attempt + 1 });
      else {
        waiting.delete(id);
        await endFailedRefresh({ sql, clock, historyLimits: session.historyLimits }, job);
      }
    }
  }

  return {
    world,
    asked,
    liveUntil: async (end) => {
      for (let at = clock.now(); at < end; at += EVERY_MS) {
        clock.advanceTo(at);
        // As the schedule of the coins does. An empty slot is believed only for coins that are still in the list.
        await sql`update market.coin set last_seen_at = ${clock.now()}`;
        await keep.run();
        for (const [id, { at: due }] of waiting) if (due <= clock.now()) await work(id);
      }
    },
  };
}

/** For each tracked coin, the days without a final answer. */
export async function daysMissing({ database }: World, from: number, to: number): Promise<string[]> {
  const rows = await database.sql<{ coinId: string; day: Date }[]>`
    select s.coin_id, d as day from market.series s join ops.tracked t on t.series_id = s.id
    cross join generate_series(${from}::timestamptz, ${to}::timestamptz - interval '1 day', interval '1 day') d
    where not s.covered @> d
    order by 1, 2`;
  return rows.map(({ coinId, day }) => `${coinId} ${new Date(day).toISOString().slice(0, 10)}`);
}
