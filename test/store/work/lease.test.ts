import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MOST_SKEW_MS } from '../../../src/clock.ts';
import { keepInstance, liveInstances } from '../../../src/store/work/instance.ts';
import {
  holdingLease,
  isLeaseAlive,
  JOB_LOCK_MS,
  LEASE_EXPIRES_AFTER_MS,
  LEASE_RENEWED_EVERY_MS,
  leaseEnd,
} from '../../../src/store/work/lease.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

test('an owner may miss three renewals, and the work of a killed one is free within half a minute', () => {
  expect(LEASE_EXPIRES_AFTER_MS).toBeGreaterThan(3 * LEASE_RENEWED_EVERY_MS);
  expect(LEASE_EXPIRES_AFTER_MS + 10_000).toBeLessThanOrEqual(30_000);
  expect(JOB_LOCK_MS).toBeLessThan(LEASE_EXPIRES_AFTER_MS);
});

describe('a lease', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  // The last renewal, in milliseconds from now.
  const cases = [
    ['renewed now', 0, true],
    ['about to expire', 1 - LEASE_EXPIRES_AFTER_MS, true],
    ['that has just expired', -LEASE_EXPIRES_AFTER_MS, false],
    ['of a clock that is a little ahead', MOST_SKEW_MS, true],
    ['of before the clock was set back', MOST_SKEW_MS + 1, false],
  ] as const;
  test.each(cases)('%s: the database and the process agree whether it is alive', async (owner, sinceMs, isAlive) => {
    const heartbeatAt = NOW + sinceMs;
    await keepInstance(database.sql, { owner, roles: [], startedAt: NOW, heartbeatAt });
    const alive = (await liveInstances(database.sql, NOW)).map((instance) => instance.owner);
    expect(alive.includes(owner)).toBe(isAlive);
    expect(isLeaseAlive(leaseEnd(heartbeatAt), NOW)).toBe(isAlive);
  });

  test('without an owner is not alive', () => {
    expect(isLeaseAlive(null, NOW)).toBe(false);
  });
});

describe('holding a lease', () => {
  const start = (work: () => Promise<string>, { fails = false, signal = new AbortController().signal } = {}) => {
    const clock = createVirtualClock(NOW);
    const renewals: number[] = [];
    const renew = async () => {
      renewals.push(clock.now() - NOW);
      if (fails) throw new Error('the database is unavailable');
    };
    const held = holdingLease({ clock, renew, signal }, work);
    const pass = async () => {
      await settled();
      clock.advance(LEASE_RENEWED_EVERY_MS);
      await settled();
    };
    return { held, renewals, pass };
  };
  const withResolvers = () => {
    let resolve: (result: string) => void = () => undefined;
    const promise = new Promise<string>((settle) => {
      resolve = settle;
    });
    return { promise, resolve };
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  test('renews the lease as long as the work runs, and no longer', async () => {
    const work = withResolvers();
    const { held, renewals, pass } = start(() => work.promise);
    await pass();
    await pass();
    work.resolve('done');
    expect(await held).toBe('done');
    await pass();
    expect(renewals).toEqual([LEASE_RENEWED_EVERY_MS, 2 * LEASE_RENEWED_EVERY_MS]);
  });

  test('rejects with the error of the work, and stops renewing', async () => {
    const { held, renewals, pass } = start(() => Promise.reject(new Error('broken')));
    await expect(held).rejects.toThrow('broken');
    await pass();
    expect(renewals).toEqual([]);
  });

  test('continues after a renewal that failed', async () => {
    const work = withResolvers();
    const { held, renewals, pass } = start(() => work.promise, { fails: true });
    await pass();
    await pass();
    work.resolve('done');
    expect(await held).toBe('done');
    expect(renewals).toHaveLength(2);
  });

  test('lets the lease expire after the signal is aborted, while the work continues', async () => {
    const work = withResolvers();
    const stop = new AbortController();
    const { held, renewals, pass } = start(() => work.promise, { signal: stop.signal });
    await pass();
    stop.abort();
    await pass();
    expect(renewals).toHaveLength(1);
    work.resolve('done');
    expect(await held).toBe('done');
  });
});
