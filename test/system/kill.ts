/** Real processes that are killed at any moment. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../support/database.ts';
import { startCli } from '../support/program.ts';
import { randomOf } from '../support/random.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

const CONCURRENCY = 4;
const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
const TO = Math.floor(Date.now() / DAY) * DAY - 5 * DAY;
const day = (at: number) => new Date(at).toISOString().slice(0, 10);

/** A request for prices brings five thousand rows, so there are fewer requests, and the run is killed sooner. */
const TARGETS = {
  candles: { options: [], from: TO - 366 * DAY * 3, least: 300, mostUntilKilled: 50, kills: 6 },
  'a few candles': { options: [], from: TO - 400 * DAY, least: 110, mostUntilKilled: 40, kills: 2 },
  prices: {
    options: ['--series', 'prices', '--interval', '5m'],
    from: TO - 320 * DAY,
    least: 50,
    mostUntilKilled: 10,
    kills: 6,
  },
} as const;

export function testKills(engine: 'Postgres' | 'Redis', of: keyof typeof TARGETS): void {
  describe.skipIf(engine === 'Redis' && testRedisUrl() === null)(
    `a backfill of ${of} killed with SIGKILL at any moment, its queue in ${engine}`,
    () => {
      const { options, from, least, mostUntilKilled, kills: most } = TARGETS[of];
      let database: TestDatabase;
      let upstream: SimulatedUpstream;
      let asked = 0;
      beforeAll(async () => {
        database = await createTestDatabase();
        upstream = await startUpstream({ seed: 5, coins: 20, latencyMs: 15 }, (simulated) => (request, peer) => {
          if (/\/ohlcv|\/tickers\/.*\/historical/.test(request.url)) asked++;
          return simulated(request, peer);
        });
      });
      afterAll(async () => {
        await upstream?.close();
        await database?.drop();
      });

      test('loses nothing that was committed, requests again at most what was in flight, and completes in the next run', {
        timeout: 240_000,
      }, async () => {
        const settings = {
          ...(engine === 'Redis' ? { REDIS_URL: testRedisUrl()! } : {}),
          DATABASE_URL: database.url,
          CHANDLER_BASE_URL: upstream.baseUrl,
          CHANDLER_PLAN: 'enterprise',
          CHANDLER_REQUESTS_PER_SECOND: '100',
          CHANDLER_CANDLES_PER_REQUEST: '10',
        };
        const target = [...COINS, ...options, '--start', day(from), '--end', day(TO), '--json'];
        const args = ['backfill', ...target, '--yes', '--concurrency', String(CONCURRENCY)];
        const { simulator } = upstream;
        const covered = async () => {
          const [row] = await database.sql<
            { candles: number }[]
          >`select coalesce(sum(covered_candles), 0)::int as candles from market.series`;
          return row!.candles;
        };
        const plan = JSON.parse((await runCommand(['plan', ...target], { env: settings })).out) as { requests: number };
        expect(plan.requests).toBeGreaterThan(least);

        const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1_000_000));
        console.info(`kills of ${of} as SEED=${seed} has them`);
        const random = randomOf(seed);
        let kills = 0;
        let before = 0;
        for (; kills < most; kills++) {
          const { process: child, ended } = await startCli(args, settings);
          const until = asked + Math.ceil(mostUntilKilled * (0.1 + 0.9 * random()));
          let running = true;
          void ended.then(() => {
            running = false;
          });
          while (running && asked < until) await systemClock.sleep(2);
          child.kill('SIGKILL');
          await ended;
          const now = await covered();
          expect(now).toBeGreaterThanOrEqual(before);
          before = now;
          for await (const proof of verifySeries(database.sql, {}, Date.now())) expect(proof.differences).toEqual([]);
        }
        const last = await runCommand(args, { env: settings });
        expect(last.err).not.toMatch(/error:/);
        expect(last.code).toBe(0);
        expect(asked).toBeGreaterThanOrEqual(plan.requests);
        expect(asked).toBeLessThanOrEqual(plan.requests + kills * CONCURRENCY);
        const [missing] = await database.sql<{ n: number }[]>`select count(*)::int as n from market.gaps`;
        expect(missing!.n).toBe(0);
        const [ledger] = await database.sql<
          { counted: number }[]
        >`select sum(month_spent)::int as counted from ops.quota_spent`;
        expect(ledger!.counted).toBeGreaterThanOrEqual(simulator.counters().requests.total);
        expect((await runCommand(['verify', '--json'], { env: settings })).code).toBe(0);
      });
    },
  );
}
