/** A Redis that goes away in the middle of a run: really killed, and back without anything it knew; or silent. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, runCli, startCli, untilSaid } from '../support/program.ts';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const FROM = TO - 900 * DAY;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const RUN = ['backfill', 'btc-bitcoin', 'eth-ethereum', '--start', day(FROM), '--end', day(TO), '--yes', '--json'];
const REQUESTS = 180;
const IN_FLIGHT = 8;

const first = await startOwnRedis();

describe.skipIf(first === null)('the Redis of a run', () => {
  let redis: OwnRedis;
  let database: TestDatabase;
  let upstream: SimulatedUpstream;
  let running: RunningCli[];
  beforeEach(async () => {
    running = [];
    redis = await startOn(first!.port);
    database = await createTestDatabase();
    upstream = await startUpstream({ seed: 5, coins: 20 });
  });
  afterEach(async () => {
    for (const { process: child } of running) child.kill('SIGKILL');
    await redis.kill();
    await upstream.close();
    await database.drop();
  });

  async function startOn(port: number): Promise<OwnRedis> {
    await first!.kill();
    const server = await startOwnRedis(port);
    if (server === null) throw new Error(`no Redis could be started on port ${port}`);
    return server;
  }

  const settings = () => ({
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    CHANDLER_BASE_URL: upstream.baseUrl,
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_REQUESTS_PER_SECOND: '30',
    CHANDLER_CANDLES_PER_REQUEST: '10',
  });
  const asked = () => upstream.asked();
  async function start(...options: string[]): Promise<RunningCli> {
    const run = await startCli([...RUN, ...options], settings());
    running.push(run);
    return run;
  }
  async function untilAsked(run: RunningCli, requests: number): Promise<void> {
    while (asked() < requests && run.process.exitCode === null) await systemClock.sleep(5);
  }
  type Report = {
    backfill: { end: string; reason?: string; until?: string | null; requests: number; gaps: unknown[] };
  };
  const reportOf = (out: string) => (JSON.parse(out) as Report).backfill;

  test('killed and started again with nothing in it: the run says so once, goes on, and asks nothing twice', {
    timeout: 120_000,
  }, async () => {
    const run = await start();
    await untilAsked(run, REQUESTS * 0.3);
    const told = untilSaid(run, /the queue is unavailable; waiting up to/);
    await redis.kill();
    await told;
    const back = untilSaid(run, /the queue recovered/);
    redis = await startOn(redis.port);
    await back;
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(0);
    expect(err.match(/the queue is unavailable/g)).toHaveLength(1);
    expect(err.match(/the queue recovered/g)).toHaveLength(1);
    expect(err).not.toMatch(/ECONN|error:|WARN|queue:/);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests: REQUESTS, gaps: [] });
    expect(asked()).toBe(REQUESTS);
  });

  test('killed for good ends the run after --max-wait, with a report and code 75; the next run completes it', {
    timeout: 120_000,
  }, async () => {
    const run = await start('--max-wait', '3s');
    await untilAsked(run, REQUESTS * 0.3);
    await redis.kill();
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(75);
    expect(err).not.toMatch(/ECONN|error:|recovered/);
    expect(reportOf(out)).toMatchObject({ end: 'stopped', reason: 'the queue is unavailable', until: null });
    expect(reportOf(out).requests).toBe(asked());
    redis = await startOn(redis.port);
    const next = await runCli(RUN, settings());
    expect(next.code, next.err).toBe(0);
    expect(reportOf(next.out)).toMatchObject({ end: 'done', gaps: [] });
    expect(asked()).toBe(REQUESTS);
  });

  test.each([
    ['killed', () => redis.kill()],
    ['silent', async () => redis.suspend()],
  ])('%s, it does not hold up the first Ctrl-C', { timeout: 120_000 }, async (_how, away) => {
    const run = await start();
    await untilAsked(run, REQUESTS * 0.3);
    const told = untilSaid(run, /the queue is unavailable/);
    await away();
    await told;
    run.process.kill('SIGINT');
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(130);
    expect(reportOf(out).end).toBe('interrupted');
    expect(asked()).toBeLessThanOrEqual(REQUESTS * 0.3 + 64 + IN_FLIGHT);
  });
});
