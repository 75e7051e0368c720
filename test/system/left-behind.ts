/** Real processes that are suspended or killed, and what other runs do about it. */
import { expect, type TestContext } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, startCli } from '../support/program.ts';
import { startUpstream } from '../support/simulated-upstream.ts';

const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const FROM = TO - 1_200 * DAY;
export const CHUNKS = 120;
/** Concurrent requests without --concurrency. */
export const IN_FLIGHT = 8;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
export const backfill = (coin: string) => ['backfill', coin, '--start', day(FROM), '--end', day(TO), '--yes', '--json'];

/** What each test has for itself. It mostly waits for the rate, so all tests run at once. */
type Scene = {
  readonly database: TestDatabase;
  readonly settings: Readonly<Record<string, string>>;
  askedOf(coin: string): number;
  start(coin: string): Promise<RunningCli>;
  /** Resolves when so many requests for the coin have arrived, or the run has ended. */
  untilAsked(run: RunningCli, coin: string, requests: number): Promise<void>;
  queued(): Promise<number>;
  statesOf(): Promise<string[]>;
};

export async function setScene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Scene> {
  const asked: string[] = [];
  const running: RunningCli[] = [];
  const database = await createTestDatabase();
  const upstream = await startUpstream({ seed: 5, coins: 20 }, (simulated) => (request) => {
    const coin = /\/coins\/([^/]+)\/ohlcv/.exec(request.url)?.[1];
    if (coin !== undefined) asked.push(coin);
    return simulated(request);
  });
  onTestFinished(async () => {
    for (const { process: child } of running) child.kill('SIGKILL');
    await upstream.close();
    await database.drop();
  });
  const settings = {
    DATABASE_URL: database.url,
    CHANDLER_BASE_URL: upstream.baseUrl,
    CHANDLER_PLAN: 'enterprise',
    CHANDLER_REQUESTS_PER_SECOND: '10',
    CHANDLER_CANDLES_PER_REQUEST: '10',
  };
  const askedOf = (coin: string) => asked.filter((other) => other === coin).length;
  return {
    database,
    settings,
    askedOf,
    start: async (coin) => {
      const run = await startCli(backfill(coin), settings);
      running.push(run);
      return run;
    },
    untilAsked: async (run, coin, requests) => {
      while (askedOf(coin) < requests && run.process.exitCode === null) await systemClock.sleep(10);
    },
    queued: async () => {
      const [row] = await database.sql<{ n: number }[]>`select count(*)::int as n from bullmq.job`;
      return row!.n;
    },
    statesOf: async () =>
      (await database.sql<{ state: string }[]>`select state from ops.backfill order by id`).map(({ state }) => state),
  };
}

export const reportOf = (out: string) =>
  (JSON.parse(out) as { backfill: { end: string; requests: number; gaps: unknown[]; failed: unknown[] } }).backfill;

/** Starts a run for the coin and kills it. Resolves to the number of requests that had arrived. */
export async function killed({ askedOf, queued, start, untilAsked }: Scene, coin: string): Promise<number> {
  const run = await start(coin);
  await untilAsked(run, coin, 20);
  run.process.kill('SIGKILL');
  await run.ended;
  expect(await queued()).toBeGreaterThan(20);
  return askedOf(coin);
}
