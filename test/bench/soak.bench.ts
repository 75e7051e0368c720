/**
 * Ten minutes (`BENCH_SECONDS`) of the service in processes of their own at 50 requests a second, with faults, and one process killed every
 * 20 seconds: nothing is lost or doubled, every request is counted, no process grows, no event loop is blocked.
 */
import { expect, it } from 'vitest';
import { testRedisUrl } from '../support/database.ts';
import { type Place, type SoakReport, soak } from '../support/soak.ts';
import { median, table, thousands, verdict } from './rounds.ts';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 600);
const PER_SECOND = Number(process.env.BENCH_PACE ?? 50);
const WORKERS = Number(process.env.BENCH_WORKERS ?? 4);
const SEED = Number(process.env.BENCH_SEED ?? 1);
const ENGINES = (process.env.BENCH_ENGINES ?? 'redis').split(',');
/** What a coin of the made-up market needs, roughly, from 2014 to 2026. */
const REQUESTS_PER_COIN = 7;

function placeLine({ role, kills, lives }: Place): [string, string] {
  const name = `${role}, killed ${kills} times`;
  if (lives.length === 0) return [name, 'no life was long enough to tell'];
  const longest = lives.reduce((a, b) => (b.last.upMs > a.last.upMs ? b : a));
  const mb = (value: number) => value.toFixed(0);
  const peak = Math.max(...lives.map((life) => life.peakMb));
  const p99 = lives.map((life) => life.last.delayP99Ms);
  const cpu = longest.last.cpuMs / longest.last.upMs;
  return [
    name,
    `longest life ${mb(longest.last.upMs / 1000)} s: ${mb(longest.first.rssMb)} → ${mb(longest.last.rssMb)} MB, peak of all ${mb(peak)} MB ${verdict(peak < 200)}; ` +
      `loop p99 ${median(p99).toFixed(0)} ms ${verdict(median(p99) < 50)} (worst life ${Math.max(...p99).toFixed(0)}), ${(100 * cpu).toFixed(0)} % of a core`,
  ];
}

function reportOf(engine: string, report: SoakReport): string {
  const { upstream } = report;
  const faults = Object.values(upstream.faults).reduce((sum, n) => sum + n, 0);
  const [account] = upstream.accounts;
  return table(
    `soak of ${thousands(SECONDS)} s at ${PER_SECOND}/s, queue on ${engine}: ${report.kills} kills, the rest took ${thousands(report.restMs / 1000)} s`,
    [
      ['requests upstream saw', `${thousands(upstream.requests.total)}, ${thousands(faults)} of them with a fault`],
      [
        'counted by the ledger (≥)',
        `${thousands(report.counted)} ${verdict(report.counted >= upstream.requests.total)}`,
      ],
      [
        'recorded',
        `${thousands(report.recorded)}, of them answered ${thousands(report.answered)} ${verdict(report.answered <= upstream.requests.total)}`,
      ],
      [
        'turned away by upstream’s pace',
        `${account?.rejected.pace ?? 0}; fullest second of its clock ${account?.peak.second ?? 0}, of ours ${report.fullestSecond}`,
      ],
      ['sent a second, while it was killed', `${((report.recorded * 1000) / report.tookMs).toFixed(1)}`],
      [
        'candles',
        `${thousands(report.candles)}; series unlike the market ${report.wrong.length}, differences ${report.differences.length}, not asked ${report.missing} ${verdict(report.wrong.length + report.differences.length + report.missing === 0)}`,
      ],
      ...report.places.map(placeLine),
      ...report.errors.slice(0, 10).map((error): [string, string] => ['error', error]),
    ],
  );
}

for (const engine of ENGINES) {
  it.skipIf(engine === 'redis' && testRedisUrl() === null)(
    `${engine}: the service loses nothing, doubles nothing, and does not grow`,
    {
      timeout: 4 * SECONDS * 1000 + 20 * 60_000,
    },
    async () => {
      const report = await soak({
        kills: { everyMs: 20_000, forMs: SECONDS * 1000 },
        perSecond: PER_SECOND,
        faults: '429:0.0005,500:0.005,502:0.003,reset:0.005,truncated:0.005,duplicates:0.01,unsorted:0.01',
        roles: ['scheduler', 'http', ...Array<string>(WORKERS).fill('worker')],
        redisUrl: engine === 'redis' ? testRedisUrl() : null,
        seed: SEED,
        coins: Math.max(100, Math.ceil((SECONDS * PER_SECOND) / REQUESTS_PER_COIN)),
        patienceMs: 2 * SECONDS * 1000 + 10 * 60_000,
      });
      console.info(reportOf(engine, report));
      expect(report.wrong).toEqual([]);
      expect(report.differences).toEqual([]);
      expect(report.missing).toBe(0);
      expect(report.counted).toBeGreaterThanOrEqual(report.upstream.requests.total);
      expect(report.answered).toBeLessThanOrEqual(report.upstream.requests.total);
      expect(report.errors).toEqual([]);
    },
  );
}
