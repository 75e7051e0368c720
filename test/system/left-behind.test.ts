/** Runs that are suspended, or killed, and what the others make of it: real processes. */
import { describe, expect, type TestContext, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, runCli, startCli } from '../support/program.ts';
import { startUpstream } from '../support/simulated-upstream.ts';

const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const FROM = TO - 1_200 * DAY;
const CHUNKS = 120;
/** At once, without --concurrency. */
const IN_FLIGHT = 8;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const backfill = (coin: string) => ['backfill', coin, '--start', day(FROM), '--end', day(TO), '--yes', '--json'];

/** What one test has for itself: most of its time it waits for a pace, so all of them run at once. */
type Scene = {
  readonly database: TestDatabase;
  readonly settings: Readonly<Record<string, string>>;
  askedOf(coin: string): number;
  start(coin: string): Promise<RunningCli>;
  /** Until so many requests for the coin have arrived, or the run has ended. */
  untilAsked(run: RunningCli, coin: string, requests: number): Promise<void>;
  queued(): Promise<number>;
  statesOf(): Promise<string[]>;
};

async function setScene({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Scene> {
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

const reportOf = (out: string) =>
  (JSON.parse(out) as { backfill: { end: string; requests: number; gaps: unknown[]; failed: unknown[] } }).backfill;

describe('a run that was suspended until another took it for dead', { concurrent: true }, () => {
  test('goes on when it is woken, and completes: each chunk is asked once, but for those in flight', async (context) => {
    const { database, askedOf, start, untilAsked, statesOf } = await setScene(context);
    const sleeper = await start('btc-bitcoin');
    await untilAsked(sleeper, 'btc-bitcoin', 20);
    sleeper.process.kill('SIGSTOP');
    const before = askedOf('btc-bitcoin');
    // As if it had slept for minutes.
    await database.sql`update ops.backfill set heartbeat_at = heartbeat_at - interval '5 minutes'`;
    // At its pace this takes longer than a heartbeat.
    const other = await start('eth-ethereum');
    const ended = await other.ended;
    expect(ended.code, ended.err).toBe(0);
    expect(reportOf(ended.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(await statesOf()).toEqual(['interrupted', 'done']);
    expect(askedOf('btc-bitcoin')).toBeLessThanOrEqual(before + IN_FLIGHT);

    sleeper.process.kill('SIGCONT');
    const { code, out, err } = await sleeper.ended;
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', gaps: [], failed: [] });
    expect(await statesOf()).toEqual(['done', 'done']);
    // An answer that was under way when it was suspended may have been too long ago.
    expect(askedOf('btc-bitcoin')).toBeGreaterThanOrEqual(CHUNKS);
    expect(askedOf('btc-bitcoin')).toBeLessThanOrEqual(CHUNKS + IN_FLIGHT);
  });
});

describe('the chunks of a run that was killed', { concurrent: true }, () => {
  async function killed({ askedOf, queued, start, untilAsked }: Scene, coin: string): Promise<number> {
    const run = await start(coin);
    await untilAsked(run, coin, 20);
    run.process.kill('SIGKILL');
    await run.ended;
    expect(await queued()).toBeGreaterThan(20);
    return askedOf(coin);
  }

  test('are not asked by the next run, which takes them away', async (context) => {
    const scene = await setScene(context);
    const { askedOf, queued, settings, statesOf } = scene;
    const before = await killed(scene, 'btc-bitcoin');
    const { code, out, err } = await runCli(backfill('eth-ethereum'), settings);
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect([askedOf('eth-ethereum'), askedOf('btc-bitcoin')]).toEqual([CHUNKS, before]);
    expect(await queued()).toBe(0);
    expect(await statesOf()).toEqual(['interrupted', 'done']);
  });

  test('are dropped unasked while others run, whose own chunks stay', async (context) => {
    const scene = await setScene(context);
    const { askedOf, queued, start, statesOf, untilAsked } = scene;
    const living = await start('ltc-litecoin');
    await untilAsked(living, 'ltc-litecoin', 5);
    await killed(scene, 'btc-bitcoin');
    // Until somebody finds out that it was killed, the living one works for it.
    const next = await start('eth-ethereum');
    const [one, two] = await Promise.all([living.ended, next.ended]);
    expect([one.code, two.code], one.err + two.err).toEqual([0, 0]);
    expect(reportOf(one.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(reportOf(two.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(askedOf('btc-bitcoin')).toBeLessThan(CHUNKS);
    expect(askedOf('eth-ethereum')).toBe(CHUNKS);
    // The killed run worked for the living one, too: what it had under way of its chunks is asked again.
    expect(askedOf('ltc-litecoin')).toBeGreaterThanOrEqual(CHUNKS);
    expect(askedOf('ltc-litecoin')).toBeLessThanOrEqual(CHUNKS + IN_FLIGHT);
    expect(await queued()).toBe(0);
    expect((await statesOf()).sort()).toEqual(['done', 'done', 'interrupted']);
  });
});
