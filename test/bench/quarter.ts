/**
 * A quarter of a year of a service under one plan, in virtual time: restarts, outages of everything it stands on, double instances
 * and clocks that are set; and what is promised is looked at at every step. Reduced: few coins, small budgets, and a clock that mostly
 * passes in steps of some hours; some whole days are lived from tick to tick.
 */
import { expect } from 'vitest';
import { schedulesOf } from '../../src/budget.ts';
import { systemClock } from '../../src/clock.ts';
import { type Environment, effectiveLimits } from '../../src/config.ts';
import type { PlanName, PlanOverrides } from '../../src/contract/plans.ts';
import { PLANS } from '../../src/contract/plans.ts';
import { ceilToGrid, DAY, HOUR, type Interval } from '../../src/core/interval.ts';
import { DEFAULT_PRIORITY } from '../../src/core/tier.ts';
import type { Schedule } from '../../src/ingest/timetable.ts';
import { queueBackfill } from '../../src/store/backfill-queue.ts';
import { latestRuns } from '../../src/store/schedule-run.ts';
import { wantSeries } from '../../src/store/series.ts';
import { addTracks, type TrackedCoins } from '../../src/store/track.ts';
import { readBackfills } from '../../src/views/backfills.ts';
import { readTierStatus } from '../../src/views/tiers.ts';
import { randomOf } from '../support/random.ts';
import type { OwnRedis } from '../support/redis-server.ts';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';
import { checkSpent, checkStored, missingOf, seriesOf, unlessUnsettled } from '../system/oracle.ts';

export type QuarterOptions = {
  readonly plan: PlanName;
  readonly hasKey: boolean;
  readonly redis: OwnRedis | null;
  /** Chooses what happens when. */
  readonly seed: number;
  readonly coins: number;
  /** The plan's own, made smaller: the upstream keeps to them. */
  readonly limits: Pick<PlanOverrides, 'requestsPerMonth' | 'anonymousRequestsPerDay'>;
  readonly perSecond: number | null;
  readonly candlesPerRequest: number;
  readonly tracks: readonly (TrackedCoins & {
    readonly interval: Interval;
    readonly days: number;
    readonly targetAgeMs: number;
  })[];
  /** What the operator records every other week. */
  readonly backfill: { readonly interval: Interval; readonly days: number };
};

export type QuarterCounts = {
  readonly requests: number;
  readonly steps: number;
  readonly events: Readonly<Record<string, number>>;
};

const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);
/** `QUARTER_DAYS=20` is a quick look. */
const DAYS = Number(process.env.QUARTER_DAYS ?? 90);
/** Nothing happens in the last days: everything must be as promised then. */
const CALM_DAYS = 3;
const LONGEST_STEP_MS = 7 * HOUR;
/** Every so many days one is lived from tick to tick, undisturbed. */
const SAMPLED = 30;
const RECORDED = 14;
const CADENCES: Environment = {
  CHANDLER_SCHEDULE_TICKERS: '0 */6 * * *',
  CHANDLER_SCHEDULE_GLOBAL: '30 */12 * * *',
  CHANDLER_SCHEDULE_COINS: '7 */12 * * *',
  CHANDLER_SCHEDULE_EXCHANGES: '22 0 * * *',
  CHANDLER_SCHEDULE_FRESHNESS: '*/30 * * * *',
  CHANDLER_SCHEDULE_GAPS: '52 */8 * * *',
};
const BORDER_MS = 2_100;
const LOOKS = 200;
const FRESHNESS_EVERY_MS = HOUR / 2;
/** The day's last step: what a day has for freshness is spread over it, and must not be slept through. */
const EVENING_MS = 23 * HOUR + 40 * MINUTE;

export async function liveAQuarter(options: QuarterOptions): Promise<QuarterCounts> {
  const { plan, hasKey, redis, limits, perSecond } = options;
  const random = randomOf(options.seed);
  const chance = (share: number) => random() < share;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const world = await createServiceWorld({
    startAt: START,
    redis,
    env: {
      ...CADENCES,
      ...(hasKey ? { CHANDLER_API_KEY: 'right', CHANDLER_SCHEDULE_ACCOUNT: '37 */12 * * *' } : {}),
      CHANDLER_PLAN: plan,
      CHANDLER_MONTHLY_REQUESTS: String(limits.requestsPerMonth ?? 'unlimited'),
      CHANDLER_DAILY_REQUESTS: String(limits.anonymousRequestsPerDay ?? 'unlimited'),
      CHANDLER_REQUESTS_PER_SECOND: String(perSecond ?? 'unlimited'),
      CHANDLER_CANDLES_PER_REQUEST: String(options.candlesPerRequest),
    },
    simulator: {
      seed: options.seed,
      coins: options.coins,
      limits: { plan, keys: { right: plan }, overrides: { ...limits, pacePerSecond: perSecond } },
    },
  });
  const { sql } = world.database;
  const schedules = schedulesOf(world.config, plan, effectiveLimits(plan, world.config)).filter(
    ({ cadence }) => cadence !== null,
  );
  let started = 0;
  let steps = 0;
  const start = () => world.start(`service-${++started}`);
  /** Since then nothing disturbs; when it is in the future it is being disturbed. */
  let calmSince = START;
  const events: Record<string, number> = {};

  const step = async (ms: number) => {
    await world.advance(ms);
    // Nothing is sent within two seconds of the border of a limited window.
    await world.advance(BORDER_MS);
    steps++;
    const label = `${new Date(world.clock.now()).toISOString()} after ${Object.entries(events)
      .map(([name, n]) => `${n} × ${name}`)
      .join(', ')}`;
    expectAlive(world);
    await checkSpent(world, label);
    if (calmSince < world.clock.now()) await checkCadence(world, schedules, label);
  };
  /** Time in which connections are made again, which goes by the machine's clock. */
  const recover = async () => {
    for (let i = 0; i < 25; i++) {
      await world.advance(4_000);
      await systemClock.sleep(40);
    }
  };
  const away = async (cut: () => void) => {
    cut();
    for (let i = between(3, 9); i > 0; i--) await world.advance(25_000);
    world.mend();
    await recover();
  };
  const happenings: Readonly<Record<string, () => Promise<unknown>>> = {
    'stopped and started again': async () => {
      await world.services()[0]!.stop();
      if (chance(0.5)) await world.advance(between(1, 6) * HOUR);
      await start();
    },
    killed: async () => {
      world.services()[0]!.kill();
      await start();
      // What the dead one had in hand is believed to be under way for a while.
      for (let i = 0; i < 8; i++) await world.advance(15_000);
      await recover();
    },
    'a second instance': async () => (world.services().length < 2 ? start() : world.services()[0]!.stop()),
    'upstream away': async () => {
      world.upstream = pick(['down', 'broken']);
      await world.advance(10 * MINUTE);
      await world.advance(between(1, 9) * HOUR);
      world.upstream = 'up';
      // The longest hold of an outage, and the longest pause of a schedule that failed again and again.
      for (let i = 0; i < 8; i++) await world.advance(10 * MINUTE);
    },
    'database away': () => away(world.cutDatabase),
    ...(redis === null ? {} : { 'Redis away': () => away(world.cutRedis) }),
    'queues lost': async () => {
      await world.wipeQueues();
      for (let i = 0; i < 6; i++) await world.advance(11_000);
    },
    'a clock set by a day': async () => {
      const off = pick([-DAY, DAY]);
      const { clock } = pick(world.services());
      clock.setOff(off);
      for (let i = 0; i < 3; i++) await world.advance(11_000);
      await world.advance(between(1, 5) * HOUR);
      clock.setOff(0);
      for (let i = 0; i < 3; i++) await world.advance(11_000);
    },
  };

  try {
    await start();
    const coins = await world.untilListed();
    await addTracks(
      sql,
      options.tracks.map(({ days, ...rule }) => ({
        ...rule,
        quote: 'usd',
        since: START - days * DAY,
        priority: DEFAULT_PRIORITY[rule.tier],
      })),
      world.clock.now(),
    );
    for (let day = 0; day < DAYS; day++) {
      const end = START + (day + 1) * DAY;
      const isCalm = day >= DAYS - CALM_DAYS || day % SAMPLED === SAMPLED - 1;
      if (day % RECORDED === 3) await record(world, coins.slice(0, 6), options.backfill);
      if (!isCalm && chance(0.4)) {
        const what = pick(Object.keys(happenings));
        events[what] = (events[what] ?? 0) + 1;
        await world.advance(between(1, 10) * HOUR);
        calmSince = Number.POSITIVE_INFINITY;
        await happenings[what]!();
        calmSince = world.clock.now();
      }
      while (world.clock.now() < end) {
        const now = world.clock.now();
        const next = isCalm
          ? Math.min(...schedules.map(({ cadence }) => cadence!.next(now)))
          : now + between(4 * HOUR, LONGEST_STEP_MS);
        const evening = end - DAY + EVENING_MS;
        await step(Math.max(1, Math.min(next, now < evening ? evening : end) - now));
      }
      await checkStored(world, `day ${day}`, ({ id }) => id % 7 === day % 7);
      if (world.clock.now() - calmSince > DAY) await checkAges(world, `day ${day}`);
    }
    await checkComplete(world, plan);
    return { requests: world.simulator.counters().requests.total, steps, events };
  } finally {
    await world.close();
  }
}

async function record(
  world: ServiceWorld,
  coinIds: readonly string[],
  { interval, days }: QuarterOptions['backfill'],
): Promise<void> {
  const { sql } = world.database;
  const now = world.clock.now();
  const to = ceilToGrid(now, interval) - DAY;
  const target = { coinIds, interval, quote: 'btc', span: { from: to - days * DAY, to } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  await queueBackfill(sql, { ...target, requestedAt: now, spec: {}, plannedRequests: 1, priority: 0 });
}

/** The latest tick of each schedule has been run, and on an undisturbed day at its very instant (P8: whatever a backfill does). */
async function checkCadence(world: ServiceWorld, schedules: readonly Schedule[], label: string): Promise<void> {
  const now = world.clock.now();
  const expected = schedules.map(
    ({ name, cadence }) => `${name} ${new Date(cadence!.latest(now)!).toISOString()} done`,
  );
  const standing = async () => {
    const names = schedules.map(({ name }) => name);
    const runs = new Map((await latestRuns(world.database.sql, names)).map((run) => [run.schedule, run]));
    return names.map((name) => {
      const run = runs.get(name);
      return run === undefined ? name : `${name} ${new Date(run.tick).toISOString()} ${run.state}`;
    });
  };
  // The queue hands a tick over when it does, by the machine's time; ours stands still meanwhile.
  for (let looks = 0; looks < LOOKS && (await standing()).join() !== expected.join(); looks++) {
    await systemClock.sleep(50);
    await world.settle();
  }
  expect(await standing(), label).toEqual(expected);
}

/** No series is older than its target, or than what was told to be achievable. */
async function checkAges(world: ServiceWorld, label: string): Promise<void> {
  for (const { tier, interval, unseen, oldestAgeMs, achievableAgeMs, targetAgeMs } of await readTierStatus(
    world.database.sql,
    world.clock.now(),
  )) {
    const what = `${label}: ${tier} ${interval}`;
    expect(unseen, what).toBe(0);
    if (achievableAgeMs === null || oldestAgeMs === null) continue;
    expect(achievableAgeMs, what).toBeGreaterThanOrEqual(Math.min(targetAgeMs, achievableAgeMs));
    expect(oldestAgeMs - LONGEST_STEP_MS - FRESHNESS_EVERY_MS, what).toBeLessThanOrEqual(achievableAgeMs);
  }
}

/** Everything wanted is there, but for what the plan does not show, and what cannot be final yet. */
async function checkComplete(world: ServiceWorld, plan: PlanName): Promise<void> {
  const now = world.clock.now();
  const { sql } = world.database;
  await checkStored(world, 'in the end');
  const tiers = await readTierStatus(sql, now);
  const slowest = Math.max(0, ...tiers.map(({ achievableAgeMs }) => achievableAgeMs ?? 0));
  const { historyDepthMs, intervals } = PLANS[plan];
  const wall = historyDepthMs === null ? Number.NEGATIVE_INFINITY : now - historyDepthMs + slowest + 2 * DAY;
  for (const series of await seriesOf(world)) {
    const { coinId, interval } = series;
    if (!intervals.includes(interval)) continue;
    const missing = unlessUnsettled(await missingOf(world, series, now), interval, now, slowest + DAY);
    expect(
      missing.filter(({ to }) => to > wall),
      `${coinId} ${interval}`,
    ).toEqual([]);
  }
  const open = (await readBackfills(sql, { all: false })).map(({ id, state, message }) => ({ id, state, message }));
  expect(open).toEqual([]);
}
