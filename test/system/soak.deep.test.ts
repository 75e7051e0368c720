/** A short soak, so that the long one (`test/bench/soak.bench.ts`) keeps working: real processes, faults, and kills. */
import { expect, test } from 'vitest';
import { testRedisUrl } from '../support/database.ts';
import { soak } from '../support/soak.ts';

const ENGINES = [['Postgres', null] as const, ['Redis', testRedisUrl()] as const].filter(
  ([name, url]) => name === 'Postgres' || url !== null,
);
/** One engine is enough each time. Which one changes from day to day. */
const [engine, redisUrl] = ENGINES[new Date().getUTCDate() % ENGINES.length]!;

test(`killed processes of a service lose nothing and store nothing twice (queue on ${engine})`, {
  timeout: 400_000,
}, async () => {
  const report = await soak({
    kills: { everyRequests: 150, times: 3 },
    perSecond: 50,
    faults: '500:0.01,reset:0.01,truncated:0.01,duplicates:0.01,unsorted:0.01',
    roles: ['scheduler', 'worker', 'worker', 'http'],
    redisUrl,
    seed: 11,
    coins: 120,
    patienceMs: 300_000,
  });
  console.info(
    `soak: ${report.kills} kills, ${report.recorded} requests, ${report.candles} candles, ${Math.round(report.tookMs / 1000)} s`,
  );
  expect(report.kills).toBe(3);
  expect(report.errors).toEqual([]);
  expect(report.differences).toEqual([]);
  expect(report.wrong).toEqual([]);
  expect(report.missing).toBe(0);
  expect(report.candles).toBeGreaterThan(50_000);
  expect(report.counted).toBeGreaterThanOrEqual(report.upstream.requests.total);
  expect(report.answered).toBeLessThanOrEqual(report.upstream.requests.total);
  for (const { lives } of report.places) for (const { peakMb } of lives) expect(peakMb).toBeLessThan(200);
});
