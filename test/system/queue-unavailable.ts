/** A Redis that fails in the middle of a run: killed and started again empty, or silent. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, startCli, untilSaid } from '../support/program.ts';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const FROM = TO - 900 * DAY;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
export const RUN = [
  'backfill',
  'btc-bitcoin',
  'eth-ethereum',
  '--start',
  day(FROM),
  '--end',
  day(TO),
  '--yes',
  '--json',
];
export const REQUESTS = 180;
/** After so many answers Redis fails. Until then no further request is answered. */
export const UNTIL_AWAY = REQUESTS * 0.3;
export const IN_FLIGHT = 8;

export const first = await startOwnRedis();

export let redis: OwnRedis;
let database: TestDatabase;
let upstream: SimulatedUpstream;
let running: RunningCli[];
/** Each test has its own Redis. */
export function useRedis(): void {
  beforeEach(async () => {
    running = [];
    redis = await startOn(first!.port);
    database = await createTestDatabase();
    upstream = await startUpstream({ seed: 5, coins: 20 });
    upstream.answerOnly(UNTIL_AWAY);
  });
  afterEach(async () => {
    for (const { process: child } of running) child.kill('SIGKILL');
    await redis.kill();
    await upstream.close();
    await database.drop();
  });
}

async function startOn(port: number): Promise<OwnRedis> {
  await first!.kill();
  const server = await startOwnRedis(port);
  if (server === null) throw new Error(`no Redis could be started on port ${port}`);
  return server;
}

export const settings = () => ({
  DATABASE_URL: database.url,
  REDIS_URL: redis.url,
  CHANDLER_BASE_URL: upstream.baseUrl,
  CHANDLER_PLAN: 'enterprise',
  CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
  CHANDLER_CANDLES_PER_REQUEST: '10',
});
export const asked = () => upstream.asked();
export async function start(...options: string[]): Promise<RunningCli> {
  const run = await startCli([...RUN, ...options], settings());
  running.push(run);
  return run;
}
/** The same run with so many requests. */
export async function startSmall(requests: number): Promise<RunningCli> {
  const candles = (REQUESTS * 10) / requests;
  const run = await startCli(RUN, { ...settings(), CHANDLER_CANDLES_PER_REQUEST: String(candles) });
  running.push(run);
  return run;
}
/** Takes Redis away in the middle of the run, and then lets the upstream answer. */
export async function takeAway(run: RunningCli, away: () => Promise<unknown> = () => redis.kill()): Promise<void> {
  while (asked() < UNTIL_AWAY && run.process.exitCode === null) await systemClock.sleep(5);
  await away();
  upstream.answerOnly(Number.POSITIVE_INFINITY);
}
type Report = {
  backfill: { end: string; reason?: string; until?: string | null; requests: number; gaps: unknown[] };
};
export const reportOf = (out: string) => (JSON.parse(out) as Report).backfill;

export async function startRedisAgain(): Promise<void> {
  redis = await startOn(redis.port);
}

export function testCtrlC(how: string, away: () => Promise<unknown>): void {
  test(`when ${how} does not delay the first Ctrl-C`, async () => {
    const run = await start();
    const told = untilSaid(run, /the queue is unavailable/);
    await takeAway(run, away);
    await told;
    run.process.kill('SIGINT');
    const { code, out, err } = await run.ended;
    expect(code, err).toBe(130);
    expect(reportOf(out).end).toBe('interrupted');
    expect(asked()).toBeLessThanOrEqual(UNTIL_AWAY + 64 + IN_FLIGHT);
  });
}
