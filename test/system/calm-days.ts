/**
 * Days of two services under one of the plans of a quarter (`quarter-plans.ts`), run tick by tick without disturbance: the schedules
 * request exactly what is reserved for them, and no series exceeds its promised age.
 */
import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { DEFAULT_PRIORITY } from '../../src/core/tier.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { budgetOf } from '../support/budget.ts';
import { createServiceWorld, expectAlive } from '../support/service-world.ts';
import { createPromiseFigures, errorsOf, misreserved, overruns, type PromiseFigures } from './promise-figures.ts';
import { CADENCES } from './quarter.ts';
import { QUARTER_PLANS, type QuarterOptions, type QuarterPlan } from './quarter-plans.ts';

const KEY = 'right';

export function testCalmDays(name: QuarterPlan, days: number): void {
  test(`${days} calm days, plan: ${name}: at each tick, what is reserved until midnight is requested by midnight`, {
    timeout: 900_000,
  }, async () => {
    const figures = await liveCalmDays(name, days, Date.UTC(2026, 0, 1));
    const { looks, reserved } = errorsOf(figures, 'day');
    expect(looks).toBeGreaterThan(40 * (days - 1));
    expect(reserved).toBeGreaterThan(10);
    expect(misreserved(figures)).toEqual([]);
    expect(overruns(figures)).toEqual([]);
  });
}

/** On the first day everything is requested for the first time, and nobody knows yet what there is. The checks start on the second day. */
async function liveCalmDays(name: QuarterPlan, days: number, startAt: number): Promise<PromiseFigures> {
  const options: Omit<QuarterOptions, 'redis'> = QUARTER_PLANS[name];
  const { plan, hasKey, limits, perSecond } = options;
  const world = await createServiceWorld({
    startAt,
    redis: null,
    env: {
      ...CADENCES,
      ...options.env,
      // Once a day the first run that uses it also requests the list of tools, which is not reserved.
      CHANDLER_RPC_URL: 'off',
      ...(hasKey ? { CHANDLER_API_KEY: KEY, CHANDLER_SCHEDULE_ACCOUNT: '37 */12 * * *' } : {}),
      CHANDLER_PLAN: plan,
      CHANDLER_MONTHLY_REQUESTS: String(limits.requestsPerMonth ?? 'unlimited'),
      CHANDLER_DAILY_REQUESTS: String(limits.anonymousRequestsPerDay ?? 'unlimited'),
      CHANDLER_REQUESTS_PER_SECOND: String(perSecond ?? 'unlimited'),
      CHANDLER_CANDLES_PER_REQUEST: String(options.candlesPerRequest),
    },
    simulator: {
      seed: options.seed,
      coins: options.coins,
      limits: { plan, keys: { [KEY]: plan }, overrides: { ...limits, pacePerSecond: perSecond } },
    },
  });
  const { sql } = world.database;
  try {
    await world.start('a');
    await world.start('b');
    await world.untilListed();
    const rules = options.tracks.map(({ days, ...rule }) => {
      return { ...rule, quote: 'usd', since: startAt - days * DAY, priority: DEFAULT_PRIORITY[rule.tier] } as const;
    });
    await addTracks(sql, rules, world.clock.now());
    const figures = createPromiseFigures(world);
    while (world.clock.now() < startAt + days * DAY) {
      const now = world.clock.now();
      const { schedules } = await budgetOf(world);
      const next = Math.min(...schedules.flatMap(({ cadence }) => (cadence === null ? [] : [cadence.next(now)])));
      // Just before the tick, when the requests of the previous tick are answered.
      await world.advance(next - 1 - now);
      if (next > startAt + DAY) await figures.look({ withAges: true, isCalm: true });
      await world.advance(1);
      await world.settle();
      expectAlive(world);
    }
    await figures.look({ withAges: true, isCalm: true });
    return figures;
  } finally {
    await world.close();
  }
}
