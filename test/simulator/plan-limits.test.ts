import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { parseHistoryLimit } from '../../src/contract/answer/errors.ts';
import type { Caller } from '../../src/contract/plan/access.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createPlanLimits, NO_LIMITS, type PlanLimitsOptions } from '../../src/simulator/plan-limits.ts';

const start = Date.UTC(2024, 4, 30, 23, 0);
const anonymous: Caller = { key: null, scheme: null, address: '10.0.0.7' };
const bare = (key: string): Caller => ({ key, scheme: 'bare', address: '10.0.0.7' });

function limits(options: Omit<PlanLimitsOptions, 'clock'> = {}) {
  const time = { now: start };
  const clock: Clock = { now: () => time.now, sleep: async () => undefined };
  const access = createPlanLimits({ clock, ...options });
  const statusOf = (caller: Caller, about: 'data' | 'account' = 'data') => {
    const answer = access.admit(caller, about);
    if (answer instanceof Promise) throw new Error('expected an answer at once');
    return answer.kind === 'admitted' ? 200 : answer.status;
  };
  return { access, time, statusOf, rejection: (caller: Caller) => access.admit(caller, 'data') };
}

describe('the limits of a plan', () => {
  it('let ten requests a second through, and answer 429 to the next', () => {
    const { statusOf, time, rejection } = limits();
    expect(Array.from({ length: 12 }, () => statusOf(anonymous))).toEqual([...Array(10).fill(200), 429, 429]);
    expect(rejection(anonymous)).toMatchObject({
      message: 'you have reached maximum request limit',
      retryAfterSeconds: 1,
    });
    time.now += 1_000;
    expect(statusOf(anonymous)).toBe(200);
  });

  it('end the day of a caller without a key, with the time until the next day', () => {
    const { statusOf, time, rejection } = limits({ overrides: { anonymousRequestsPerDay: 3 } });
    expect([1, 2, 3, 4].map(() => statusOf(anonymous))).toEqual([200, 200, 200, 429]);
    expect(rejection(anonymous)).toMatchObject({ retryAfterSeconds: 3_600 });
    expect(statusOf({ ...anonymous, address: '10.0.0.8' })).toBe(200);
    time.now += HOUR;
    expect(statusOf(anonymous)).toBe(200);
  });

  it('end the month of a key with 402 until the first of the next, and still answer requests for the account', () => {
    const { statusOf, time, access } = limits({ keys: { abc: 'starter' }, overrides: { requestsPerMonth: 2 } });
    expect([1, 2, 3].map(() => statusOf(bare('abc')))).toEqual([200, 200, 402]);
    expect(statusOf(bare('abc'), 'account')).toBe(200);
    expect(access.account(bare('abc'))).toMatchObject({
      plan: 'starter',
      usage: { message: 'limited plan', current_month: { requests_made: 2, requests_left: 0 } },
    });
    time.now += DAY;
    expect(statusOf(bare('abc'))).toBe(402);
    time.now += HOUR;
    expect(statusOf(bare('abc'))).toBe(200);
  });

  it('may begin with a month partly spent', () => {
    const { statusOf } = limits({ keys: { abc: 'pro' }, spentBefore: 999_999 });
    expect([1, 2].map(() => statusOf(bare('abc')))).toEqual([200, 402]);
  });

  it('know a key only by its exact text, and only in the required auth scheme', () => {
    const { statusOf, access } = limits({ keys: { abc: 'pro' }, scheme: 'bare' });
    expect(statusOf(bare('abc'))).toBe(200);
    expect(statusOf({ ...bare('abc'), scheme: 'bearer' })).toBe(403);
    for (const key of ['abcd', 'toString', '__proto__']) expect(statusOf(bare(key))).toBe(403);
    expect(access.forbidden()).toBe(4);
    expect(access.account(bare('abcd'))).toBeNull();
    expect(limits({ keys: { abc: 'pro' }, scheme: 'bearer' }).statusOf(bare('abc'))).toBe(403);
    expect(limits({ requireKey: true }).statusOf(anonymous)).toBe(403);
  });

  it('refuse history before the plan’s depth, to the nanosecond, with a text that names the earliest instant', () => {
    const { access } = limits();
    const limit = start - DAY;
    expect(access.refuseHistory('free', '24h', limit)).toBeNull();
    const text = access.refuseHistory('free', '24h', limit - 1)!;
    expect(text).toMatch(
      /^Getting historical OHLCV data before 2024-05-29 23:00:00\.\d{4,9} \+0000 UTC is not allowed in this plan/,
    );
    expect(parseHistoryLimit(text)!.notBefore).toBe(limit + 1);
    expect(access.refuseHistory('ultimate', '24h', 0)).toBeNull();
  });

  it('refuse intervals that the plan does not have', () => {
    const { access } = limits();
    expect(parseHistoryLimit(access.refuseHistory('pro', '1h', start)!)).toEqual({ notBefore: null });
    expect(access.refuseHistory('business', '1h', start)).toBeNull();
    expect(access.refuseHistory('enterprise', '5m', 0)).toBeNull();
  });

  it('can be lifted altogether', () => {
    const { statusOf, access } = limits({ overrides: NO_LIMITS });
    expect(new Set(Array.from({ length: 2_000 }, () => statusOf(anonymous)))).toEqual(new Set([200]));
    expect(access.refuseHistory('free', '5m', 0)).toBeNull();
  });

  it('count what they let through and what they refused, and never name a key', () => {
    const { statusOf, time, access } = limits({ keys: { abc: 'enterprise' }, plan: 'free' });
    for (let i = 0; i < 15; i++) statusOf(bare('abc'));
    statusOf(anonymous);
    time.now += 2 * HOUR;
    expect(access.counters()).toEqual([
      {
        account: 'key-ba7816bf8f01',
        plan: 'enterprise',
        requests: 15,
        admitted: 10,
        rejected: { pace: 5, day: 0, month: 0 },
        thisDay: 0,
        thisMonth: 10,
        peak: { second: 15, day: 10, month: 10 },
      },
      expect.objectContaining({ account: 'anonymous@10.0.0.7', plan: 'free', admitted: 1, thisDay: 0, thisMonth: 1 }),
    ]);
  });
});
