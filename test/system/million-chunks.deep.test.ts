/**
 * P8 with a backfill of more than a million chunks, in virtual time: each tick runs within its own interval, and the backfill gets all
 * requests that the schedules leave, of the second and of the day. Neither its plan nor its queue nor the process grows with it.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { planOf } from '../../src/contract/plan/plans.ts';
import { ceilToGrid, DAY, HOUR } from '../../src/core/interval.ts';
import { planBackfill } from '../../src/ingest/backfill/plan.ts';
import { documentedLimit } from '../../src/ingest/limits/history-limit.ts';
import type { Schedule } from '../../src/ingest/schedule/schedule-plan.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { latestRuns } from '../../src/store/work/schedule-run.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { budgetOf } from '../support/budget.ts';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';
import { checkSpent } from './oracle.ts';

const MINUTE = 60_000;
const MIDNIGHT = Date.UTC(2026, 9, 15);
const START = MIDNIGHT - HOUR;
const COINS = 1_000;
const MILLION = 1_000_000;
/** Some minutes at full rate, beside what the schedules need. The rest of its time the backfill waits for the next day. */
const PER_DAY = 410;
const PER_SECOND = 1;
/** The requests of a minute at full rate, minus a small tolerance and a permit that a busy machine lost. */
const FULL_MINUTE = 0.9 * 60 * PER_SECOND;
/** At most so many chunks of a backfill are in the queue, with room for ticks, refreshes, and the bookkeeping of the queues. */
const MOST_QUEUED = 1_024 + 76;
/** A million chunks as objects would be several times that. */
const MOST_GROWN_MB = 100;
const TARGET_AGE = HOUR;
const FRESHNESS_EVERY = 5 * MINUTE;
const BORDER_MS = 2_500;

/** Ticks at every minute of the tested hours. */
const ENV = {
  CHANDLER_PLAN: 'enterprise',
  CHANDLER_DAILY_REQUESTS: String(PER_DAY),
  CHANDLER_REQUESTS_PER_SECOND: String(PER_SECOND),
  CHANDLER_SCHEDULE_GLOBAL: '* 0,23 * * *',
  CHANDLER_SCHEDULE_TICKERS: '*/15 0,23 * * *',
  CHANDLER_SCHEDULE_COINS: '7 * * * *',
  CHANDLER_SCHEDULE_FRESHNESS: '*/5 * * * *',
  CHANDLER_SCHEDULE_GAPS: '52 * * * *',
  ...Object.fromEntries(
    [...CATALOGUE_KINDS, 'exchanges', 'rates', 'renames'].map((name) => [
      `CHANDLER_SCHEDULE_${name.toUpperCase()}`,
      'off',
    ]),
  ),
};

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Memory that is still in use. */
function heapMb(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

let world: ServiceWorld;
afterEach(() => world?.close());

async function begin(redis: OwnRedis | null): Promise<readonly string[]> {
  world = await createServiceWorld({
    startAt: START,
    redis,
    env: ENV,
    simulator: {
      seed: 5,
      coins: COINS,
      limits: { plan: 'enterprise', overrides: { anonymousRequestsPerDay: PER_DAY, pacePerSecond: PER_SECOND } },
    },
  });
  await world.start('a');
  const coinIds = await world.untilListed();
  const rule = { interval: '1h', quote: 'usd', since: START - 2 * DAY, priority: 20, targetAgeMs: TARGET_AGE } as const;
  const coins = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
  await addTracks(
    world.database.sql,
    coins.map((coinId) => ({ ...rule, tier: 'list', coinId })),
    world.clock.now(),
  );
  return coinIds;
}

/** Does what `chandler backfill --all --interval 5m --detach` does. */
async function record(coinIds: readonly string[]): Promise<{ readonly id: number; readonly chunks: number }> {
  const { sql } = world.database;
  const now = world.clock.now();
  const to = ceilToGrid(now, '5m') - 2 * DAY;
  const target = { coinIds, interval: '5m', quote: 'usd', span: { from: Date.UTC(2014, 0), to } } as const;
  const plan = planOf('enterprise');
  const historyLimit = documentedLimit(plan, '5m');
  const { cost } = await planBackfill({ sql, target, now, askedSince: now, plan, historyLimit });
  const plannedRequests = cost.requests;
  await wantSeries(sql, { ...target, priority: 0 });
  const id = await queueBackfill(sql, { ...target, requestedAt: now, spec: {}, plannedRequests, priority: 0 });
  return { id, chunks: plannedRequests };
}

async function schedules(): Promise<readonly Schedule[]> {
  return (await budgetOf(world)).schedules;
}

/** The requests spent of the day, and those left that the schedules will not need any more. */
async function readDay(): Promise<{ readonly spent: number; readonly free: number }> {
  const now = world.clock.now();
  const [row] = await world.database.sql<{ spent: number }[]>`
    select coalesce(sum(day_spent), 0)::int as spent from ops.quota
    where day_start = date_trunc('day', ${now}::timestamptz, 'UTC')`;
  return { spent: row!.spent, free: PER_DAY - (await budgetOf(world)).reserved(now).day };
}

/** The latest run of each schedule began within its interval, and no tick older than a minute waits. */
async function checkTicks(): Promise<void> {
  const now = world.clock.now();
  const active = (await schedules()).filter(({ cadence }) => cadence !== null);
  const names = active.map(({ name }) => name);
  const runs = new Map((await latestRuns(world.database.sql, names)).map((run) => [run.schedule, run]));
  for (const { name, cadence } of active) {
    const what = `${name} at ${new Date(now).toISOString()}`;
    const due = cadence!.latest(now - MINUTE)!;
    if (due < START) continue;
    const run = runs.get(name);
    expect(run?.tick, what).toBeGreaterThanOrEqual(due);
    expect(run!.begunAt - run!.tick, what).toBeLessThan(cadence!.next(run!.tick) - run!.tick);
  }
}

const askedSince = (from: number, path: RegExp) =>
  world.asked.filter((one) => one.at > from && path.test(one.path)).length;

const first = await startOwnRedis();
await first?.kill();

describe.each(['Postgres', 'Redis'])('with its queues on %s', (engine) => {
  let redis: OwnRedis | null = null;
  beforeAll(async () => {
    if (engine === 'Redis') redis = await startOwnRedis();
  });
  afterAll(() => redis?.kill());

  test.skipIf(engine === 'Redis' && first === null)(
    'a backfill of over a million chunks delays no scheduled run beyond its interval, and gets what they leave',
    { timeout: 420_000 },
    async () => {
      const coinIds = await begin(redis);
      const before = heapMb();
      const { id, chunks } = await record(coinIds);
      expect(chunks).toBeGreaterThan(MILLION);
      expect(heapMb() - before, 'planned').toBeLessThan(MOST_GROWN_MB);

      const begun = world.clock.now();
      const minutes = { full: 0, held: 0 };
      let wasRunning = false;
      // On a slow machine the list of coins has taken some minutes.
      const firstMinute = (Math.floor(begun / MINUTE) + 1) * MINUTE;
      for (let at = firstMinute; at <= MIDNIGHT + 6 * MINUTE; at += MINUTE) {
        const from = world.clock.now();
        // The wait after the border of a day is as long as the loops that look for work sleep. `advance` does not wake them.
        await world.advance(BORDER_MS);
        await world.advance(at - from - BORDER_MS);
        const label = new Date(at).toISOString();
        expectAlive(world);
        await checkSpent(world, label);
        await checkTicks();
        expect(await world.queued(), label).toBeLessThan(MOST_QUEUED);
        if (at % (5 * MINUTE) === 0) expect(heapMb() - before, label).toBeLessThan(MOST_GROWN_MB);
        const [backfill] = await readBackfills(world.database.sql, { all: true, id });
        expect(backfill!.leftRequests, label).toBeGreaterThan(MILLION);
        const isRunning = backfill!.state === 'running';
        if (isRunning && wasRunning) {
          minutes.full++;
          expect(askedSince(from, /./), label).toBeGreaterThan(FULL_MINUTE);
        }
        if (!isRunning && !wasRunning && at !== MIDNIGHT) {
          minutes.held++;
          const { spent, free } = await readDay();
          // Whether a tick of this minute has sent its request is not known.
          expect(Math.abs(spent - free), `${label}: ${spent} spent, ${free} free`).toBeLessThanOrEqual(2);
        }
        wasRunning = isRunning;
      }
      // Both days had their share.
      expect(minutes.full).toBeGreaterThanOrEqual(6);
      expect(minutes.held).toBeGreaterThan(45);
      const now = world.clock.now();
      expect(askedSince(MIDNIGHT, /ohlcv/)).toBeGreaterThan(FULL_MINUTE);
      const { cadence } = (await schedules()).find(({ name }) => name === 'global')!;
      for (let tick = cadence!.next(begun); tick <= now - MINUTE; tick = cadence!.next(tick)) {
        const asked = world.asked.filter(({ at, path }) => path === '/global' && at >= tick && at < tick + MINUTE);
        expect(asked, new Date(tick).toISOString()).toHaveLength(1);
      }
      for (const { unseen, oldestAgeMs } of await readTierStatus(world.database.sql, now)) {
        expect(unseen).toBe(0);
        expect(oldestAgeMs).toBeLessThan(TARGET_AGE + FRESHNESS_EVERY + 2 * MINUTE);
      }
    },
  );
});
