/** The promised age holds just before each tick, when data is oldest, also with two services. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 0, 10);
const TICK_MS = HOUR / 2;
/** The answers to the requests of a tick have arrived by then. */
const BEFORE_MS = 1_000;
const OFF = Object.fromEntries(CATALOGUE_KINDS.map((name) => [`CHANDLER_SCHEDULE_${name.toUpperCase()}`, 'off']));

let world: ServiceWorld;

/** How much time passes: from when ages are checked, and at how many ticks. */
const CASES = {
  few: {
    coins: 8,
    afterMs: DAY / 4,
    ticks: 16,
    // 7 series, each refreshed every hour and a half: 112 requests a day.
    perMonth: { 'where there are enough requests': 16_000, 'where they are short': 2_500 },
  },
  many: {
    coins: 20,
    afterMs: DAY / 2,
    ticks: 36,
    // 17 series: 272 requests a day.
    perMonth: { 'where there are enough requests': 40_000, 'where they are short': 6_200 },
  },
} as const;
type Budget = 'where there are enough requests' | 'where they are short';

export function testAges(...cases: readonly (readonly [size: keyof typeof CASES, name: Budget])[]): void {
  afterEach(() => world?.close());

  test.each(cases)('with %s series, %s, no series ever exceeds its promised age', async (size, name) => {
    const { coins, afterMs, ticks } = CASES[size];
    const perMonth = CASES[size].perMonth[name];
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
        coins,
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
    while (world.clock.now() < START + afterMs + (ticks + 1) * TICK_MS) {
      await world.advance(untilTick());
      const [status] = await readTierStatus(sql, world.clock.now());
      // At first all series want their turn at once.
      if (status !== undefined && world.clock.now() > START + afterMs) {
        expect(status.unseen).toBe(0);
        seen.push({ age: status.oldestAgeMs!, promised: status.achievableAgeMs! });
      }
      await world.advance(2 * BEFORE_MS);
    }
    expect(seen.length).toBeGreaterThanOrEqual(ticks);
    expect(seen.filter(({ age, promised }) => age > promised)).toEqual([]);
    const { promised } = seen.at(-1)!;
    if (name === 'where there are enough requests') expect(promised).toBe(rule.targetAgeMs);
    else expect(promised).toBeGreaterThan(rule.targetAgeMs);
    // The promised age is not so high that it would always hold.
    expect(Math.max(...seen.map(({ age }) => age))).toBeGreaterThan(0.6 * promised);
  });
}
