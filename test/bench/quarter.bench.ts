/**
 * A quarter of a year of the service in virtual time, under four plans. Not yet in CI: on a machine that is busy with other things a plan
 * takes many minutes, and no whole quarter has been seen to pass. `QUARTER_DAYS=10 npm run bench -- quarter` looks at ten days.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOUR } from '../../src/core/interval.ts';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { liveAQuarter, type QuarterOptions } from './quarter.ts';

let redis: OwnRedis | null = null;
beforeAll(async () => {
  redis = await startOwnRedis();
});
afterAll(() => redis?.kill());

const DAILY = [
  { tier: 'top', top: 8, interval: '24h', days: 1, targetAgeMs: 12 * HOUR },
  { tier: 'all', interval: '24h', days: 1, targetAgeMs: 24 * HOUR },
] as const;
const SMALL = {
  coins: 24,
  perSecond: null,
  candlesPerRequest: 366,
  tracks: DAILY,
  backfill: { interval: '24h', days: 1 },
} as const;

const PLANS: Readonly<Record<string, Omit<QuarterOptions, 'redis'> & { readonly onRedis: boolean }>> = {
  'without a key': {
    ...SMALL,
    plan: 'free',
    hasKey: false,
    onRedis: false,
    seed: 1,
    limits: { anonymousRequestsPerDay: 45, requestsPerMonth: 20_000 },
  },
  free: { ...SMALL, plan: 'free', hasKey: true, onRedis: true, seed: 2, limits: { requestsPerMonth: 1_100 } },
  pro: {
    plan: 'pro',
    hasKey: true,
    onRedis: false,
    seed: 3,
    coins: 12,
    limits: { requestsPerMonth: 1_500 },
    perSecond: null,
    candlesPerRequest: 7,
    tracks: [{ tier: 'all', interval: '24h', days: 60, targetAgeMs: 12 * HOUR }],
    backfill: { interval: '24h', days: 60 },
  },
  enterprise: {
    plan: 'enterprise',
    hasKey: true,
    onRedis: true,
    seed: 4,
    coins: 8,
    limits: {},
    perSecond: 10,
    candlesPerRequest: 366,
    tracks: [
      { tier: 'list', coinId: 'btc-bitcoin', interval: '5m', days: 2, targetAgeMs: 6 * HOUR },
      { tier: 'top', top: 3, interval: '1h', days: 40, targetAgeMs: 12 * HOUR },
      { tier: 'all', interval: '24h', days: 400, targetAgeMs: 24 * HOUR },
    ],
    backfill: { interval: '6h', days: 200 },
  },
};

test.each(Object.keys(PLANS))('a quarter %s: cadence, quota, ages and what is stored are as promised', async (name) => {
  const { onRedis, ...options } = PLANS[name]!;
  const { requests, steps, events } = await liveAQuarter({ ...options, redis: onRedis ? redis : null });
  console.info(`${name}: ${requests} requests in ${steps} steps`, events);
  expect(steps).toBeGreaterThan(0);
});
