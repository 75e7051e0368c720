/** Services on hosts whose clocks can be set. */
import { expect } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { createServiceWorld, expectAlive, type ServiceWorld } from '../support/service-world.ts';
import { checkSpent, checkStored, missingOf, seriesOf, unlessUnsettled } from './oracle.ts';

export const MINUTE = 60_000;
/** A Wednesday noon in the middle of a month. */
export const START = Date.UTC(2026, 9, 14, 12);
export const STEP = 5 * MINUTE;
/** The longest time between two refreshes of a tracked series. */
export const TARGET_AGE = HOUR;
export const INTERVALS: Readonly<Record<string, number>> = {
  '/tickers': 15 * MINUTE,
  '/global': 30 * MINUTE,
  '/coins': HOUR,
  '/coins/btc-bitcoin/ohlcv/historical': TARGET_AGE + 10 * MINUTE,
  '/coins/eth-ethereum/ohlcv/historical': TARGET_AGE + 10 * MINUTE,
};

export let world: ServiceWorld;

export async function begin(env: Record<string, string> = {}, perDay: number | null = null): Promise<void> {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      CHANDLER_SCHEDULE_TICKERS: '*/15 * * * *',
      CHANDLER_SCHEDULE_GLOBAL: '*/30 * * * *',
      CHANDLER_SCHEDULE_COINS: '7 * * * *',
      CHANDLER_SCHEDULE_FRESHNESS: '*/10 * * * *',
      ...env,
    },
    simulator: {
      seed: 7,
      coins: 6,
      unlimited: true,
      limits: { plan: 'enterprise', overrides: { anonymousRequestsPerDay: perDay } },
    },
  });
  await world.start('a');
  await world.start('b');
  await world.untilListed();
  const rule = {
    interval: '1h',
    quote: 'usd',
    since: START - 20 * DAY,
    priority: 20,
    targetAgeMs: TARGET_AGE,
  } as const;
  const coins = ['btc-bitcoin', 'eth-ethereum'];
  await addTracks(
    world.database.sql,
    coins.map((coinId) => ({ ...rule, tier: 'list', coinId })),
    world.clock.now(),
  );
}

/** Lets this much time pass, step by step. */
export async function live(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= STEP) {
    await world.advance(STEP);
    expectAlive(world);
    await checkSpent(world, new Date(world.clock.now()).toISOString());
  }
}

export async function record(coinIds: readonly string[], to: number): Promise<number> {
  const { sql } = world.database;
  const target = { coinIds, interval: '24h', quote: 'usd', span: { from: to - 300 * DAY, to } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const requestedAt = world.clock.now();
  return queueBackfill(sql, { ...target, requestedAt, spec: {}, plannedRequests: 1, priority: 0 });
}

export const stateOf = async (id: number) => (await readBackfills(world.database.sql, { all: true, id }))[0]!;

/** Whether our clock is behind the true time. Then no slot of a series is missing until the clock has caught up, and no request is needed. */
export const isBehind = (off: number) => off < 0;

/** The longest times between two requests of a kind, or since the last one, that exceed its interval. */
export function silences(since: number, withSeries = true): readonly string[] {
  const now = world.clock.now();
  return Object.entries(INTERVALS).flatMap(([path, intervalMs]) => {
    if (!withSeries && path.includes('ohlcv')) return [];
    const times = [since, ...world.asked.filter((one) => one.path === path && one.at > since).map(({ at }) => at), now];
    const longest = Math.max(...times.slice(1).map((at, i) => at - times[i]!));
    return longest > intervalMs + 2 * STEP ? [`${path} was silent for ${longest / MINUTE} minutes`] : [];
  });
}

export async function expectComplete(): Promise<void> {
  const now = world.clock.now();
  await checkStored(world, 'in the end');
  for (const series of await seriesOf(world)) {
    const missing = unlessUnsettled(await missingOf(world, series, now), series.interval, now, TARGET_AGE + HOUR);
    expect(missing, `${series.coinId} ${series.interval}`).toEqual([]);
  }
}

/** Whose clock is set: that of one service's host, or that of the only machine, which also runs the database. */
export const JUMPS = [
  ['one host', 'forward, back again, and behind', [DAY, 0, -DAY]],
  ['the whole machine', 'forward and back again', [DAY, 0]],
  ['the whole machine', 'back and forward again', [-DAY, 0]],
] as const;

/** Checks that no schedule pauses longer than its interval, and that nothing is lost. */
export async function jump(whose: (typeof JUMPS)[number][0], offs: readonly number[]): Promise<void> {
  await begin();
  await live(HOUR);
  for (const off of offs) {
    const [a, b] = world.services();
    a!.clock.setOff(off);
    if (whose === 'the whole machine') {
      b!.clock.setOff(off);
      await world.setDatabaseOff(off);
    }
    const since = world.clock.now();
    const id = await record(['ltc-litecoin'], START - (off === 0 ? 10 : 400) * DAY);
    await live(130 * MINUTE);
    expect(silences(since, whose === 'one host' || !isBehind(off))).toEqual([]);
    expect(await stateOf(id)).toMatchObject({ state: 'done', leftRequests: 0 });
  }
  await expectComplete();
}
