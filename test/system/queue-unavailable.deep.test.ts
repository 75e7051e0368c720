import { describe, expect, test } from 'vitest';
import { runCli } from '../support/program.ts';
import {
  asked,
  first,
  REQUESTS,
  RUN,
  redis,
  reportOf,
  settings,
  start,
  startRedisAgain,
  takeAway,
  testCtrlC,
  useRedis,
} from './queue-unavailable.ts';

describe.skipIf(first === null)('the Redis of a run', () => {
  useRedis();

  test('ends the run when killed for good, after --max-wait, with a report and code 75; the next run completes it', async () => {
    const run = await start('--max-wait', '3s');
    await takeAway(run);
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(75);
    expect(err).not.toMatch(/ECONN|error:|recovered/);
    expect(reportOf(out)).toMatchObject({ end: 'stopped', reason: 'the queue is unavailable', until: null });
    expect(reportOf(out).requests).toBe(asked());
    await startRedisAgain();
    const next = await runCli(RUN, settings());
    expect(next.code, next.err).toBe(0);
    expect(reportOf(next.out)).toMatchObject({ end: 'done', gaps: [] });
    expect(asked()).toBe(REQUESTS);
  });

  testCtrlC('killed', () => redis.kill());
  testCtrlC('silent', async () => redis.suspend());
});
