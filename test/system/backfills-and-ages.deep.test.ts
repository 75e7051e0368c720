/** A month with too few requests for the tracked series, and one backfill after another: backfills get their share once, and ages stay. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';
import { checkSpent } from './oracle.ts';

const START = Date.UTC(2026, 0, 1);
const PER_MONTH = 2_000;
const BACKFILLS = 4;

let world: ServiceWorld;
afterEach(() => world?.close());

test('the achievable ages stay the same, however many backfills are recorded', {
  timeout: 240_000,
}, async () => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_MONTHLY_REQUESTS: String(PER_MONTH),
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      CHANDLER_CANDLES_PER_REQUEST: '50',
      CHANDLER_SCHEDULE_TICKERS: '0 */6 * * *',
      CHANDLER_SCHEDULE_GLOBAL: 'off',
      CHANDLER_SCHEDULE_COINS: '7 */12 * * *',
      CHANDLER_SCHEDULE_EXCHANGES: 'off',
      CHANDLER_SCHEDULE_FRESHNESS: '*/30 * * * *',
      CHANDLER_SCHEDULE_GAPS: 'off',
    },
    simulator: {
      seed: 3,
      coins: 30,
      limits: { plan: 'enterprise', overrides: { requestsPerMonth: PER_MONTH, pacePerSecond: null } },
    },
  });
  const { sql } = world.database;
  await world.start('a');
  const coinIds = await world.untilListed();
  const rule = { tier: 'all', interval: '24h', quote: 'usd', priority: 0, targetAgeMs: 6 * HOUR } as const;
  await addTracks(sql, [{ ...rule, since: START - DAY }], world.clock.now());
  const live = async (ms: number) => {
    for (let left = ms; left > 0; left -= HOUR / 2) await world.advance(HOUR / 2);
    await checkSpent(world, new Date(world.clock.now()).toISOString());
  };
  const achievable = async () => (await readTierStatus(sql, world.clock.now()))[0]!.achievableAgeMs!;
  await live(6 * HOUR);
  const before = await achievable();
  expect(before).toBeGreaterThan(rule.targetAgeMs);

  const target = {
    coinIds,
    interval: '24h',
    quote: 'btc',
    span: { from: Date.UTC(2023, 0), to: START - 5 * DAY },
  } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  for (let i = 0; i < BACKFILLS; i++) {
    // Each is more urgent than those that wait already, and computes for itself how many requests there are.
    const requestedAt = world.clock.now();
    await queueBackfill(sql, { ...target, requestedAt, spec: {}, plannedRequests: 600, priority: i });
    await live(2 * HOUR);
  }
  expect(await achievable()).toBeLessThan(1.02 * before);
  const [status] = await readTierStatus(sql, world.clock.now());
  expect(status!.oldestAgeMs).toBeLessThan(before + 2 * HOUR);
  // A tenth of the month.
  const spent = (await readBackfills(sql, { all: true })).reduce((sum, backfill) => sum + backfill.spent, 0);
  expect(spent).toBeGreaterThan(0.08 * PER_MONTH);
  expect(spent).toBeLessThan(0.12 * PER_MONTH);
});
