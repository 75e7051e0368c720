/**
 * A whole backfill as a user runs it, compared with its two unavoidable halves: fetching the same URLs with the same client (without
 * parsing), and writing the same rows with the same statements. All with the same concurrency, each in a new process.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Span } from '../../src/core/span.ts';
import { createClient, type Sql } from '../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { ensureBuilt } from '../support/build.ts';
import { createTestDatabase, testAdminUrl, testRedisUrl } from '../support/database.ts';
import { type Measured, type RunningSimulator, runMeasured, startSimulator } from './measured-cli.ts';
import { makeSeriesOf } from './prepared.ts';
import { median, spread, table, thousands, verdict } from './rounds.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const CONCURRENCY = 8;
const COINS = Number(process.env.BENCH_COINS ?? 200);
const COINS_4 = 4 * COINS;
const START = '2015-07-01';
const END = '2025-07-01';
const SPAN = { from: Date.parse(START), to: Date.parse(END) };
const PATIENCE_MS = 30_000;
/** Without limits. At ten requests a second, the fastest pace of any plan, a hundredth of it is enough. */
const LEAST_RATIO = 0.35;
const YARDSTICK = fileURLToPath(new URL('yardstick-process.mjs', import.meta.url));
const ENGINES = ['postgres', 'redis'] as const;

let simulator: RunningSimulator;
beforeAll(async () => {
  simulator = await startSimulator(COINS_4);
  await setAutovacuum('= off');
});
afterAll(async () => {
  await setAutovacuum('to default');
  await simulator?.stop();
});

/** Autovacuum runs once a minute during whichever half is measured then, and takes one of about five seconds. */
async function setAutovacuum(to: '= off' | 'to default'): Promise<void> {
  const admin = createClient({ url: testAdminUrl(), max: 1 });
  try {
    await admin.unsafe(`alter system set autovacuum ${to}`);
    await admin`select pg_reload_conf()`;
  } finally {
    await admin.end({ timeout: 5 });
  }
}

type Whole = Measured & {
  readonly requests: number;
  readonly candles: number;
  /** From the first to the last statement of the run, without starting Node, reading the catalogue and planning. */
  readonly runMs: number;
  readonly asked: readonly Asked[];
};
type Asked = { readonly coinId: string; readonly span: Span };

async function wholeBackfill(engine: (typeof ENGINES)[number], coins: number): Promise<Whole> {
  const database = await createTestDatabase({ max: 1 });
  try {
    const args = ['backfill', '--top', `${coins}`, '--start', START, '--end', END, '--yes', '--json'];
    const measured = await runMeasured([...args, '--concurrency', `${CONCURRENCY}`], {
      DATABASE_URL: database.url,
      CHANDLER_BASE_URL: simulator.baseUrl,
      CHANDLER_MONTHLY_REQUESTS: 'unlimited',
      CHANDLER_DAILY_REQUESTS: 'unlimited',
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      CHANDLER_PLAN: 'enterprise',
      ...(engine === 'redis' ? { REDIS_URL: testRedisUrl()! } : {}),
    });
    if (measured.code !== 0) throw new Error(`the backfill ended with ${measured.code}: ${measured.err}`);
    const [run] = await database.sql<{ ms: number; candles: number }[]>`
      select extract(epoch from finished_at - started_at)::float8 * 1000 as ms,
        (select count(*)::int from market.candle) as candles from ops.backfill`;
    const asked = await askedOf(database.sql);
    return { ...measured, requests: asked.length, candles: run!.candles, runMs: run!.ms, asked };
  } finally {
    await database.drop();
  }
}

async function askedOf(sql: Sql): Promise<Asked[]> {
  return sql<Asked[]>`
    select s.coin_id, f.span from ops.fetch f join market.series s on s.id = f.series_id order by f.id`;
}

/** Milliseconds that one half of the work took, in a process as new as that of the command. */
async function yardstick(half: 'fetch' | 'write', asked: readonly Asked[]): Promise<number> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-bench-'));
  const database = await createTestDatabase({ max: 1 });
  try {
    const coinIds = [...new Set(asked.map(({ coinId }) => coinId))];
    const ids = await makeSeriesOf(database.sql, coinIds, '24h', SPAN);
    await ensurePartitions(database.sql, '24h', SPAN);
    const file = path.join(folder, 'asked.json');
    writeFileSync(
      file,
      JSON.stringify({
        baseUrl: simulator.baseUrl,
        databaseUrl: database.url,
        interval: '24h',
        limit: 366,
        concurrency: CONCURRENCY,
        patienceMs: PATIENCE_MS,
        asked: asked.map((one) => ({ ...one, seriesId: ids[coinIds.indexOf(one.coinId)] })),
      }),
    );
    const dist = pathToFileURL(await ensureBuilt()).href;
    const { stdout } = await promisify(execFile)(process.execPath, [YARDSTICK, dist, half, file]);
    return (JSON.parse(stdout) as { ms: number }).ms;
  } finally {
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  }
}

it('a backfill fills the warehouse at 0.35 of the speed of its slower half or better', async () => {
  const engines = ENGINES.filter((engine) => engine === 'postgres' || testRedisUrl() !== null);
  const warmUp = await wholeBackfill('postgres', COINS);
  const { asked } = warmUp;
  // The speed of a shared machine changes by a fifth within a minute: each run stands between two writing halves.
  const rounds: { fetch: number; writes: number[]; whole: Whole[] }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const fetch = await yardstick('fetch', asked);
    const writes = [await yardstick('write', asked)];
    const whole: Whole[] = [];
    for (const engine of engines) {
      whole.push(await wholeBackfill(engine, COINS));
      writes.push(await yardstick('write', asked));
    }
    rounds.push({ fetch, writes, whole });
  }
  const { candles, requests } = warmUp;
  const speed = (ms: readonly number[]) => `${thousands((candles / median(ms)) * 1000)} candles/s`;
  const lines: [string, string][] = [
    ['fetching without parsing', speed(rounds.map((r) => r.fetch))],
    ['writing prepared rows', speed(rounds.flatMap((r) => r.writes))],
  ];
  for (const [i, engine] of engines.entries()) {
    const of = (pick: (whole: Whole) => number) => rounds.map((r) => pick(r.whole[i]!));
    const ratios = rounds.map(({ fetch, writes, whole }) => {
      return Math.max(fetch, (writes[i]! + writes[i + 1]!) / 2) / whole[i]!.runMs;
    });
    lines.push(
      [`backfill, queue on ${engine}`, speed(of((w) => w.runMs))],
      [`  ratio to the slower (≥ ${LEAST_RATIO})`, `${spread(ratios)} ${verdict(median(ratios) >= LEAST_RATIO)}`],
      ['  the whole command', `${spread(of((w) => w.ms / 1000))} s, processor ${spread(of((w) => w.cpuMs / 1000))} s`],
      [
        '  largest resident size',
        `${spread(
          of((w) => w.rssMb),
          0,
        )} MB`,
      ],
    );
  }
  console.info(
    table(
      `backfill of ${COINS} coins over ten years: ${thousands(requests)} requests, ${thousands(candles)} candles, ${CONCURRENCY} at once, median of ${ROUNDS}`,
      lines,
    ),
  );
  for (const round of rounds) {
    for (const whole of round.whole) expect([whole.requests, whole.candles]).toEqual([requests, candles]);
  }
});

it('a backfill needs less than 250 MB, however large it is', async () => {
  const [small, large] = [await wholeBackfill('postgres', COINS), await wholeBackfill('postgres', COINS_4)];
  const line = ({ rssMb, requests, candles, runMs }: Whole) =>
    `${rssMb.toFixed(0)} MB for ${thousands(requests)} requests, ${thousands(candles)} candles at ${thousands((candles / runMs) * 1000)} a second`;
  const growth = large.rssMb / small.rssMb;
  console.info(
    table('largest resident size of the backfill process', [
      ['N', line(small)],
      ['4 N', line(large)],
      ['4 N / N (flat: ≤ 1.25)', `${growth.toFixed(2)} ${verdict(growth <= 1.25)}`],
      ['< 250 MB', verdict(Math.max(small.rssMb, large.rssMb) < 250)],
    ]),
  );
  expect(Math.max(small.rssMb, large.rssMb)).toBeLessThan(250);
});
