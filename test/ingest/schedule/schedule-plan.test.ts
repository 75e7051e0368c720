import { describe, expect, test } from 'vitest';
import { effectiveLimits } from '../../../src/config.ts';
import { PLAN_NAMES, PLANS, type PlanName } from '../../../src/contract/plan/plans.ts';
import { averageNeeds } from '../../../src/ingest/schedule/needs.ts';
import {
  type Cadences,
  loadOf,
  refuseOverspending,
  type Schedule,
  schedulePlan,
} from '../../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from '../../../src/ingest/schedule/schedules.ts';
import type { Limits } from '../../../src/quota/quota.ts';
import { reservedAt } from '../../../src/quota/reservation.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

function limitsOf(plan: PlanName, hasKey: boolean): Limits {
  return effectiveLimits(plan, { limits: {}, apiKey: hasKey ? 'k' : null });
}

function schedulesOf(
  plan: PlanName,
  hasKey = plan !== 'free',
  limits = limitsOf(plan, hasKey),
  cadences: Cadences = {},
) {
  return schedulePlan({ plan, limits, hasKey, places: new Set(['attestations', 'lake'] as const), cadences });
}

const cronOf = (schedules: readonly Schedule[], name: string) =>
  schedules.find((schedule) => schedule.name === name)?.cadence?.cron ?? null;

describe('the cadences of a plan', () => {
  test('leave an anonymous user most of the day and of the month for candles', () => {
    const { day, month } = loadOf(schedulesOf('free'), NOW);
    // 96 for tickers, 48 for the market as a whole, 4 for coins, 1 for exchanges, 14 for rates.
    expect(day.requests).toBe(163);
    expect(month.requests).toBe(31 * 163);
    expect(day.requests / 1_000).toBeLessThan(0.25);
    expect(month.requests / 20_000).toBeLessThan(0.26);
  });

  test.each(PLAN_NAMES)('of %s, with a key, are all on and take little more than a quarter at most', (plan) => {
    const schedules = schedulesOf(plan, true);
    expect(schedules.map(({ name }) => name)).toEqual(SCHEDULE_NAMES);
    // The free plan has no changelog of ids, and only larger ones than pro have mappings.
    const off = schedules.filter(({ cadence }) => cadence === null).map(({ name }) => name);
    const { idChanges, mappings } = PLANS[plan];
    expect(off).toEqual([...(idChanges ? [] : ['renames']), ...(mappings ? [] : ['coin_mappings'])]);
    const { perMonth } = limitsOf(plan, true);
    const { month } = loadOf(schedules, NOW);
    if (perMonth !== null) expect(month.requests).toBeLessThan(perMonth * 0.26);
    // A more expensive plan has at least as many ticks.
    const ticks = schedulesOf('free', true).map(({ cadence }) => cadence?.count(month.from, month.to) ?? 0);
    schedules.forEach(({ cadence }, i) => {
      expect(cadence?.count(month.from, month.to) ?? 0).toBeGreaterThanOrEqual(ticks[i]!);
    });
  });

  test('are the same every day, so that their cost does not depend on the day', () => {
    for (const plan of PLAN_NAMES) {
      const { day, month } = loadOf(schedulesOf(plan, true), NOW);
      expect(month.requests).toBe(31 * day.requests);
    }
  });

  test('without a key do not request the account', () => {
    expect(cronOf(schedulesOf('free', false), 'account')).toBeNull();
    expect(cronOf(schedulesOf('free', true), 'account')).toBe('37 */6 * * *');
  });

  test('where limits set by hand leave them no room are those of a smaller plan, down to the list of coins once a day', () => {
    const limited = (perMonth: number | null, perDay: number | null) =>
      schedulesOf('pro', true, { perMonth, perDay, perSecond: null });
    expect(cronOf(limited(100_000, null), 'tickers')).toBe('*/2 * * * *');
    expect(cronOf(limited(11_000, null), 'tickers')).toBe('*/15 * * * *');
    expect(cronOf(schedulesOf('pro', true, { perMonth: null, perDay: null, perSecond: 0.01 }), 'tickers')).toBe(
      '*/15 * * * *',
    );
    const sparse = limited(null, 6);
    expect(cronOf(sparse, 'tickers')).toBeNull();
    expect(loadOf(sparse, NOW).day.requests).toBe(3);
  });

  test('give way to those that are set by hand', () => {
    const schedules = schedulesOf('free', false, undefined, { tickers: '0 * * * *', global: 'off' });
    expect(cronOf(schedules, 'tickers')).toBe('0 * * * *');
    expect(cronOf(schedules, 'global')).toBeNull();
    expect(schedules.find(({ name }) => name === 'tickers')?.isSet).toBe(true);
    expect(loadOf(schedules, NOW).day.requests).toBe(24 + 4 + 1 + 14);
  });
});

describe('schedules that together exceed the plan', () => {
  const check = (cadences: Cadences, limits = limitsOf('free', false)) =>
    refuseOverspending(schedulePlan({ plan: 'free', limits, hasKey: false, places: new Set(), cadences }), {
      plan: 'free',
      limits,
      now: NOW,
    });

  test('are refused with the calculation for the fullest month', () => {
    expect(() => check({ tickers: '*/2 * * * *' })).toThrow(
      "the schedules alone need 24,397 requests in a month of 31 days (tickers 22,320 × 1 + global 1,488 × 1 + rates 31 × 14 + coins 124 × 1 + exchanges 31 × 1), but the limit is 20,000 (plan free); run them less often, like CHANDLER_SCHEDULE_TICKERS='*/15 * * * *', or turn one off with CHANDLER_SCHEDULE_TICKERS=off",
    );
  });

  test('are refused by the anonymous day as well', () => {
    expect(() => check({ tickers: '* * * * *' }, { perMonth: null, perDay: 1_000, perSecond: 10 })).toThrow(
      /^the schedules alone need 1,507 requests in a day \(tickers 1,440 × 1 \+ .*the limit is 1,000 \(plan free\)/,
    );
  });

  test('are refused by the rate as well, which limits the requests of a day', () => {
    // 86,400 × 0.01 / 1.01.
    const slow = { perMonth: null, perDay: null, perSecond: 0.01 };
    expect(() => check({ tickers: '* * * * *' }, slow)).toThrow(
      /^the schedules alone need 1,\d\d\d requests in a day \(tickers 1,440 × 1 .*but the limit is 855 \(a little less than 0.01 a second, plan free\)/,
    );
    expect(() => check({}, slow)).not.toThrow();
  });

  test('are accepted when they just fill the month, and refused with one request more', () => {
    const only = (tickers: string): Cadences => ({
      tickers,
      global: 'off',
      coins: 'off',
      exchanges: 'off',
      rates: 'off',
    });
    const limits = { perMonth: 31, perDay: null, perSecond: null };
    expect(() => check(only('0 0 * * *'), limits)).not.toThrow();
    expect(() => check(only('0 0 * * *'), { ...limits, perMonth: 30 })).toThrow(/31 requests in a month of 31 days/);
    expect(() => check(only('off'), { ...limits, perMonth: 1 })).not.toThrow();
  });
});

test('a backfill leaves exactly what the remaining ticks will request', () => {
  const needs = averageNeeds(schedulesOf('free'));
  expect(needs.map(({ name }) => name)).toEqual(['tickers', 'global', 'coins', 'exchanges', 'rates']);
  // From 12:01 on: tickers 47, global 23, coins 12:07 and 18:07; then nine more days.
  expect(reservedAt(NOW + 60_000, needs)).toEqual({
    day: 47 + 23 + 2,
    month: 47 + 23 + 2 + 9 * 163,
    account: { day: 0, month: 0 },
  });
});

test('the average needs of a plan with a key reserve requests about the account', () => {
  const schedules = schedulesOf('business');
  const account = averageNeeds(schedules.filter(({ name }) => name === 'account'));
  const { day, month } = reservedAt(NOW, account);
  expect(day).toBeGreaterThan(0);
  expect(reservedAt(NOW, averageNeeds(schedules)).account).toEqual({ day, month });
});

test('the list of coins takes one request more where no schedule reads the tickers', () => {
  const coins = (cadences: Cadences) =>
    schedulesOf('free', false, undefined, cadences).find(({ name }) => name === 'coins')!.requests;
  expect(coins({})).toBe(1);
  expect(coins({ tickers: 'off' })).toBe(2);
});
