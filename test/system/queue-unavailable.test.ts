import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { untilSaid } from '../support/program.ts';
import {
  asked,
  first,
  REQUESTS,
  redis,
  reportOf,
  start,
  startRedisAgain,
  startSmall,
  takeAway,
  useRedis,
} from './queue-unavailable.ts';

describe.skipIf(first === null)('the Redis of a run', () => {
  useRedis();

  test('is waited for when killed and started again empty: the run says so once, goes on, and requests nothing twice', async () => {
    const run = await start();
    const told = untilSaid(run, /the queue is unavailable; waiting up to/);
    await takeAway(run);
    await told;
    const back = untilSaid(run, /the queue recovered/);
    await startRedisAgain();
    await back;
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(err.match(/the queue is unavailable/g)).toHaveLength(1);
    expect(err.match(/the queue recovered/g)).toHaveLength(1);
    expect(err).not.toMatch(/ECONN|error:|WARN|queue:/);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests: REQUESTS, gaps: [] });
    expect(asked()).toBe(REQUESTS);
  });

  test('is waited for when full: the run says so once, goes on when there is room again, and requests nothing twice', async () => {
    const admin = new Redis(redis.url);
    const requests = 2 * REQUESTS;
    try {
      // More chunks than the queue gets at once. It must take the others when it is full.
      const run = await startSmall(requests);
      const told = untilSaid(run, /the queue is unavailable; waiting up to/);
      await takeAway(run, () => admin.config('SET', 'maxmemory', '1'));
      await told;
      const back = untilSaid(run, /the queue recovered/);
      await admin.config('SET', 'maxmemory', '0');
      await back;
      const { code, out, err } = await run.ended;
      expect(code, err).toBe(0);
      expect(err.match(/the queue is unavailable/g)).toHaveLength(1);
      expect(err).not.toMatch(/OOM|error:|WARN|queue:/);
      expect(reportOf(out)).toMatchObject({ end: 'done', requests, gaps: [] });
      expect(asked()).toBe(requests);
    } finally {
      admin.disconnect();
    }
  });
});
