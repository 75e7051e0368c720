/**
 * The whole-system property with all that an operator runs, one seed at a time: services with tracked series, schedules, snapshots and
 * recorded backfills, several at once, restarted, killed, disconnected from database, queue and upstream, and on hosts whose clocks are
 * set. Time is virtual. Database, queues and services are real.
 */
import { expect } from 'vitest';
import { ceilToGrid, DAY, floorToGrid, HOUR, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import { DEFAULT_PRIORITY, defaultTargetAgeMs } from '../../src/core/tier.ts';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import {
  type BackfillChange,
  changeBackfill,
  prioritizeBackfill,
  queueBackfill,
} from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { addTracks, removeTracks, type TrackedCoins } from '../../src/store/tracking/track-rule.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { randomOf } from '../support/random.ts';
import type { OwnRedis } from '../support/redis-server.ts';
import { createServiceWorld, expectAlive, type Service, type ServiceWorld } from '../support/service-world.ts';
import { checkSpent, checkStored, missingOf, seriesOf, unlessUnsettled } from './oracle.ts';
import { drawLies } from './scenario.ts';

const MINUTE = 60_000;
/** As in the seeds without a service, except for the fault that reports the month as exhausted: after that nothing is requested until its end. */
const FAULTS = [
  '429',
  '429-silent',
  '500',
  '502',
  'reset',
  'hang',
  'truncated',
  'empty',
  'duplicates',
  'conflict',
  'unsorted',
  'impossible',
  'stale',
  'revision',
];
const MOST_SERVICES = 3;
/** Steps of some hours after the last disturbance, until nothing may be missing. */
const MOST_CALM_STEPS = 120;
const CALM_STEP_MS = 3 * HOUR;
/** Longer than any of the loops that look for work, except those that look for lost work. */
const LOOK_MS = 2_500;
const QUIET_LOOKS = 5;
const MOST_LOOKS = 100;

export type ServiceSeedCounts = { readonly requests: number; readonly faults: number; readonly days: number };

export async function runServiceSeed(seed: number, redis: OwnRedis | null): Promise<ServiceSeedCounts> {
  const random = randomOf(seed + 3_000_000);
  const chance = (share: number) => random() < share;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));

  const startAt = Date.UTC(2026, 9, 1) + Math.floor(random() * 34 * DAY);
  const rates = FAULTS.filter(() => chance(0.35)).map((name) => `${name}:${(random() * 0.05).toFixed(4)}`);
  // A separate random sequence, because the scenarios of the seeds are older.
  const lies = drawLies(randomOf(seed + 5_000_000));
  const faults = parseFaultSpec([...rates, ...lies, `seed=${seed}`].join());
  if (!faults.ok) throw new Error(faults.problem);
  const isAnonymous = chance(0.4);
  const perDay = isAnonymous ? between(60, 200) : null;
  const perMonth = chance(0.4) ? between(700, 1_500) : null;
  const world = await createServiceWorld({
    startAt,
    redis,
    env: {
      CHANDLER_REQUESTS_PER_SECOND: chance(0.3) ? '10' : 'unlimited',
      CHANDLER_DAILY_REQUESTS: String(perDay ?? 'unlimited'),
      CHANDLER_MONTHLY_REQUESTS: String(perMonth ?? 'unlimited'),
      CHANDLER_CANDLES_PER_REQUEST: String(pick([7, 20, 50, 366])),
      CHANDLER_SCHEDULE_TICKERS: pick(['0 */6 * * *', '*/30 4-6 * * *']),
      CHANDLER_SCHEDULE_GLOBAL: pick(['5 */8 * * *', 'off']),
      CHANDLER_SCHEDULE_COINS: '7 */6 * * *',
      CHANDLER_SCHEDULE_EXCHANGES: '22 0 * * *',
      CHANDLER_SCHEDULE_FRESHNESS: pick(['*/30 * * * *', '*/10 * * * *']),
      ...(isAnonymous
        ? { CHANDLER_PLAN: 'enterprise' }
        : { CHANDLER_API_KEY: 'right', CHANDLER_SCHEDULE_ACCOUNT: '37 */12 * * *' }),
    },
    simulator: {
      seed,
      coins: between(4, 8),
      unlimited: true,
      faults: faults.spec,
      limits: {
        plan: 'enterprise',
        keys: { right: 'enterprise' },
        overrides: { anonymousRequestsPerDay: perDay, requestsPerMonth: perMonth },
      },
    },
  });
  const { sql } = world.database;
  const label = `seed ${seed}`;
  try {
    /** As far as the list of coins has been read. A test that tracks a coin reads the list first. */
    let coins: readonly string[] = [];
    const some = () => {
      const chosen = coins.filter(() => chance(0.5));
      return chosen.length === 0 ? [coins[0]!] : chosen;
    };
    const spanBefore = (interval: Interval) => {
      const width = INTERVAL_MS[interval];
      const to = ceilToGrid(world.clock.now() - between(0, 200) * width, interval);
      return { from: to - between(10, 150) * width, to };
    };
    const INTERVALS_ASKED = ['24h', '24h', '1h', '5m', '6h'] as const;
    const track = async () => {
      const which: TrackedCoins = pick([
        { tier: 'list', coinId: pick(coins) },
        { tier: 'top', top: between(1, 4) },
        { tier: 'all' },
      ] as const);
      const interval = pick(INTERVALS_ASKED);
      const since = floorToGrid(world.clock.now() - between(1, 300) * INTERVAL_MS[interval], interval);
      const priority = DEFAULT_PRIORITY[which.tier];
      const targetAgeMs = defaultTargetAgeMs(which.tier, interval);
      const rule = { ...which, interval, quote: chance(0.2) ? 'btc' : 'usd', since, priority, targetAgeMs } as const;
      await addTracks(sql, [rule], world.clock.now());
    };
    const untrack = () => removeTracks(sql, { intervals: [pick(INTERVALS_ASKED)] });
    const record = async () => {
      const interval = pick(INTERVALS_ASKED);
      const target = { coinIds: some(), interval, quote: 'usd', span: spanBefore(interval) } as const;
      await wantSeries(sql, { ...target, priority: 0 });
      const priority = pick([-5, 0, 0, 20]);
      const requestedAt = world.clock.now();
      await queueBackfill(sql, { ...target, requestedAt, spec: { seed }, plannedRequests: 1, priority });
    };
    const change = async () => {
      const [one] = await sql<{ id: number }[]>`select id from ops.backfill order by random() limit 1`;
      if (one === undefined) return;
      if (chance(0.3)) await prioritizeBackfill(sql, one.id, between(-50, 50));
      else
        await changeBackfill(
          sql,
          one.id,
          pick<BackfillChange>(['pause', 'resume', 'resume', 'cancel']),
          world.clock.now(),
        );
    };
    /** Small steps: a service that waits for something unavailable looks again and again. */
    const sitOut = async (ms: number) => {
      for (let left = ms; left > 0; left -= 20_000) await world.advance(Math.min(left, 20_000));
    };
    let started = 0;
    const start = async () => {
      if (world.services().length < MOST_SERVICES)
        await world.start(`${'abc'[started++ % 3]}`, { concurrency: between(1, 6) });
    };
    const one = () => pick(world.services());
    const withOne = async (act: (service: Service) => Promise<unknown> | unknown) => {
      if (world.services().length > 0) await act(one());
    };
    const blows: Readonly<Record<string, () => Promise<unknown> | unknown>> = {
      start,
      stop: () => withOne((service) => service.stop()),
      kill: () => withOne((service) => service.kill()),
      restart: () => withOne((service) => service.stop().then(start)),
      'database away': async () => {
        world.cutDatabase();
        await sitOut(between(5, 200) * 1_000);
        world.mend();
      },
      'queue away': async () => {
        if (redis === null) return;
        world.cutRedis();
        await sitOut(between(5, 200) * 1_000);
        world.mend();
      },
      'connections cut': () =>
        sql`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'chandler test' and random() < 0.5`,
      'queue lost': () => world.wipeQueues(),
      'upstream down': async () => {
        world.upstream = pick(['down', 'broken']);
        await sitOut(between(5, 300) * 1_000);
        await world.advance(between(0, 5) * HOUR);
        world.upstream = 'up';
      },
      'clock set': () => withOne((service) => service.clock.setOff(pick([-DAY, DAY, -7 * MINUTE, 3 * HOUR]))),
      'clock right': () => withOne((service) => service.clock.setOff(0)),
      track,
      untrack,
      record,
      'backfill changed': change,
    };

    await start();
    coins = await world.untilListed();
    await track();
    await record();
    const told: string[] = [];
    for (let round = between(12, 22); round > 0; round--) {
      const blow = world.services().length === 0 ? 'start' : pick(Object.keys(blows));
      told.push(`${new Date(world.clock.now()).toISOString()} ${blow}`);
      await blows[blow]!();
      await world.advance(pick([10_000, MINUTE, 10 * MINUTE, 40 * MINUTE, 3 * HOUR, 9 * HOUR]));
      expectAlive(world);
      await checkSpent(world, `${label}: ${told.join(', ')}`);
      if (round % 3 === 0) await checkStored(world, `${label}: ${told.join(', ')}`);
    }
    // Liveness: nothing disturbs any more. The clocks are right, and at least one service runs.
    world.mend();
    if (world.services().length === 0) await start();
    for (const service of world.services()) service.clock.setOff(0);
    await sql`update ops.backfill set state = 'queued', finished_at = null where is_detached and state in ('paused', 'cancelled')`;
    for (let step = 0; ; step++) {
      const stepMs = step < 40 ? CALM_STEP_MS : 4 * CALM_STEP_MS;
      await world.advance(stepMs);
      await comeToRest(world);
      expectAlive(world);
      await checkSpent(world, label);
      const left = await whatIsLeft(world, stepMs);
      if (left.length === 0) break;
      if (step % 8 === 7) await askAgain(world);
      expect(step, `${label}: ${told.join(', ')}\nstill missing: ${left.join('; ')}`).toBeLessThan(MOST_CALM_STEPS);
    }
    await checkStored(world, label);
    const { requests, faults: injected } = world.simulator.counters();
    return {
      requests: requests.total,
      faults: Object.values(injected).reduce((sum, n) => sum + n, 0),
      days: (world.clock.now() - startAt) / DAY,
    };
  } catch (error) {
    // No two runs of a seed are quite alike, so the run that failed must report what happened.
    for (const { name, lines } of world.services()) console.error(`the last of ${name}:\n${lines.slice(-40).join('')}`);
    throw error;
  } finally {
    await world.close();
  }
}

/** Some hours passed at once. What became due is requested before the checks, as it would be if they had passed one by one. */
async function comeToRest(world: ServiceWorld): Promise<void> {
  let quiet = 0;
  for (let looks = 0; looks < MOST_LOOKS && quiet < QUIET_LOOKS; looks++) {
    const before = world.asked.length;
    await world.advance(LOOK_MS);
    quiet = world.asked.length === before ? quiet + 1 : 0;
  }
}

/** Spans that may not be missing any more, backfills that are not over, tracked series that exceed their promised age. */
async function whatIsLeft(world: ServiceWorld, stepMs: number): Promise<readonly string[]> {
  const now = world.clock.now();
  const { sql } = world.database;
  const left: string[] = [];
  const tiers = await readTierStatus(sql, now);
  const slowest = Math.max(0, ...tiers.map(({ achievableAgeMs }) => achievableAgeMs ?? 0));
  for (const { tier, interval, unseen, oldestAgeMs, achievableAgeMs } of tiers) {
    const late = (oldestAgeMs ?? 0) - (achievableAgeMs ?? 0) - stepMs - HOUR;
    if (unseen > 0 || late > 0) left.push(`${tier} ${interval}: ${unseen} unseen, ${late} ms too old`);
  }
  for (const series of await seriesOf(world)) {
    const { coinId, interval } = series;
    const missing = unlessUnsettled(await missingOf(world, series, now), interval, now, slowest + stepMs + HOUR);
    for (const { from, to } of missing)
      left.push(`${coinId} ${interval} ${new Date(from).toISOString()}…${new Date(to).toISOString()}`);
  }
  for (const { id, state } of await readBackfills(sql, { all: false }))
    if (state !== 'failed') left.push(`backfill ${id} ${state}`);
  return left;
}

/**
 * Does what an operator does after reading `chandler gaps`: slots that no rule tracks any more, and that no backfill has fetched or will
 * fetch, are wanted again.
 */
export async function askAgain(world: ServiceWorld): Promise<void> {
  const now = world.clock.now();
  const { sql } = world.database;
  if ((await readBackfills(sql, { all: false })).some(({ state }) => state !== 'failed')) return;
  const tracked = new Set(
    (await sql<{ id: number }[]>`select series_id as id from ops.tracked where ends_at is null`).map(({ id }) => id),
  );
  for (const series of await seriesOf(world)) {
    const { id, coinId, interval, quote } = series;
    const missing = unlessUnsettled(await missingOf(world, series, now), interval, now, 0);
    if (tracked.has(id) || missing.length === 0) continue;
    const span = { from: missing[0]!.from, to: missing.at(-1)!.to };
    const target = { coinIds: [coinId], interval, quote, span };
    await queueBackfill(sql, { ...target, requestedAt: now, spec: {}, plannedRequests: 1, priority: 0 });
  }
}
