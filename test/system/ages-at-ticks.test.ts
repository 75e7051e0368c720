/** The age that is told to be achievable holds just before each tick, when data is as old as it becomes; with two services. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 0, 10);
const TICK_MS = HOUR / 2;
/** Answers of the tick have come by then. */
const BEFORE_MS = 1_000;
const OFF = Object.fromEntries(CATALOGUE_KINDS.map((name) => [`CHANDLER_SCHEDULE_${name.toUpperCase()}`, 'off']));

let world: ServiceWorld;
afterEach(() => world?.close());

test.each([
  // 17 series: a refresh of each an hour and a half after the last one takes 272 requests a day.
  { name: 'where there are enough requests', perMonth: 40_000, isMet: true },
  { name: 'where they are short', perMonth: 6_200, isMet: false },
])('$name, no series is ever older', { timeout: 180_000 }, async ({ perMonth, isMet }) => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      ...OFF,
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_MONTHLY_REQUESTS: String(perMonth),
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      CHANDLER_SCHEDULE_TICKERS: 'off',
      CHANDLER_SCHEDULE_GLOBAL: 'off',
      CHANDLER_SCHEDULE_EXCHANGES: 'off',
      CHANDLER_SCHEDULE_RATES: 'off',
      CHANDLER_SCHEDULE_COINS: '7 */12 * * *',
      CHANDLER_SCHEDULE_GAPS: 'off',
      CHANDLER_SCHEDULE_FRESHNESS: '*/30 * * * *',
    },
    simulator: {
      seed: 3,
      coins: 20,
      limits: { plan: 'enterprise', overrides: { requestsPerMonth: perMonth, pacePerSecond: null } },
    },
  });
  const { sql } = world.database;
  await world.start('a');
  await world.start('b');
  await world.untilListed();
  const rule = { tier: 'all', interval: '1h', quote: 'usd', priority: 0, targetAgeMs: 2 * HOUR } as const;
  await addTracks(sql, [{ ...rule, since: START }], world.clock.now());
  const untilTick = () => TICK_MS - (world.clock.now() % TICK_MS) - BEFORE_MS;
  const seen: { age: number; promised: number }[] = [];
  while (world.clock.now() < START + 1.25 * DAY) {
    await world.advance(untilTick());
    const [status] = await readTierStatus(sql, world.clock.now());
    // At first all series want their turn at once.
    if (status !== undefined && world.clock.now() > START + DAY / 2) {
      expect(status.unseen).toBe(0);
      seen.push({ age: status.oldestAgeMs!, promised: status.achievableAgeMs! });
    }
    await world.advance(2 * BEFORE_MS);
  }
  expect(seen.length).toBeGreaterThan(30);
  expect(seen.filter(({ age, promised }) => age > promised)).toEqual([]);
  const { promised } = seen.at(-1)!;
  if (isMet) expect(promised).toBe(rule.targetAgeMs);
  else expect(promised).toBeGreaterThan(rule.targetAgeMs);
  // It is no figure that always holds because it is far too high.
  expect(Math.max(...seen.map(({ age }) => age))).toBeGreaterThan(0.6 * promised);
});
