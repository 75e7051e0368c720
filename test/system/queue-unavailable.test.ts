import { describe, expect, test } from 'vitest';
import { untilSaid } from '../support/program.ts';
import { asked, first, REQUESTS, reportOf, start, startRedisAgain, takeAway, useRedis } from './queue-unavailable.ts';

describe.skipIf(first === null)('the Redis of a run', () => {
  useRedis();

  test('killed and started again with nothing in it: the run says so once, goes on, and asks nothing twice', async () => {
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
});
