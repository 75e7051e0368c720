/**
 * The service compared with a bare handler of the same HTTP library and the same bytes, and reads with millions of candles
 * (CHANDLER_BENCH_CANDLES, default two million; 50000000 takes minutes and 6 GB). CHANDLER_BENCH_DATABASE_URL names a migrated database
 * that is filled on its first use on a day, and kept; if shared_buffers is as large, no disk is measured. CHANDLER_BENCH_SOAK_SECONDS of
 * load show whether memory grows.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { SEARCH_CATEGORIES } from '../../src/contract/record/catalogue.ts';
import { type CandleInterval, DAY, HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import { rollUp } from '../../src/store/candle/rollup.ts';
import { openDatabase } from '../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, startCli } from '../support/program.ts';
import { cpuSecondsOf, rssMbOf } from './process-use.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const CANDLES = Number(process.env.CHANDLER_BENCH_CANDLES ?? 2_000_000);
const SECONDS = Number(process.env.CHANDLER_BENCH_SECONDS ?? 4);
const GIVEN = process.env.CHANDLER_BENCH_DATABASE_URL;
const COINS = 50_000;
const LISTED = 2_000;
const YEARS = 10;
const UNTIL = Math.floor(systemClock.now() / DAY) * DAY;
const FROM = UNTIL - YEARS * 365 * DAY;
const PER_COIN = YEARS * 365 * 25;
const WITH_CANDLES = Math.max(1, Math.round(CANDLES / PER_COIN));
const ROUNDS = 3;
const LOOK_SECONDS = 30;
const CONNECTIONS = 64;

let database: TestDatabase;
let folder: string;
let serving: RunningCli;
let bare: ChildProcess;
let servedAt: string;
let bareAt: string;

beforeAll(async () => {
  database = await openDatabaseToFill();
  folder = mkdtempSync(path.join(tmpdir(), 'chandler-bench-'));
  const [known] = await database.sql<{ isFilled: boolean }[]>`select exists (select from market.coin) as is_filled`;
  if (!known!.isFilled) {
    await fillCoins();
    for (const interval of ['24h', '1h'] as const) await fillCandles(interval);
    await database.sql`analyze`;
  }
  serving = await startCli(['serve'], {
    DATABASE_URL: database.url,
    CHANDLER_LISTEN: '127.0.0.1:0',
    CHANDLER_SERVE_LIMITS: 'off',
    LOG_LEVEL: 'info',
  });
  servedAt = await said(serving.process, /"url":"([^"]+)"/, 'stderr');
  await vi.waitFor(async () => expect((await fetch(`${servedAt}/ready`)).status).toBe(200), { timeout: 60_000 });
}, 60 * 60_000);
afterAll(async () => {
  serving?.process.kill('SIGTERM');
  bare?.kill();
  await serving?.ended;
  if (folder) rmSync(folder, { recursive: true });
  await database?.drop();
});

/** A given database outlives the benchmark. */
async function openDatabaseToFill(): Promise<TestDatabase> {
  if (GIVEN === undefined) return createTestDatabase();
  const given = await openDatabase({ url: GIVEN, max: 10, applicationName: 'chandler test' });
  return { ...given, drop: () => given.close() };
}

function said(child: ChildProcess, what: RegExp, stream: 'stdout' | 'stderr'): Promise<string> {
  let all = '';
  return new Promise((resolve, reject) => {
    child[stream]!.on('data', (part: Buffer) => {
      all += part;
      const [, found] = what.exec(all) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once('close', () => reject(new Error(`ended: ${all}`)));
  });
}

async function fillCoins(): Promise<void> {
  const { sql } = database;
  await sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_data_at, first_seen_at, last_seen_at, rank_seen_at, position)
    select 'c' || i || '-coin-number-' || i, 'Coin number ' || md5(i::text), 'C' || i, i, 'coin', false, true,
      ${FROM}::timestamptz, now(), date_trunc('minute', now()), now(), i
    from generate_series(1, ${COINS}) i`;
  await sql`
    insert into market.ticker (coin_id, updated_at, at, rank, position, seen_at, price, volume_24h, volume_24h_change_24h, market_cap,
      market_cap_change_24h, percent_change_15m, percent_change_30m, percent_change_1h, percent_change_6h, percent_change_12h,
      percent_change_24h, percent_change_7d, percent_change_30d, percent_change_1y, ath_price, ath_at, percent_from_price_ath,
      circulating_supply, total_supply, max_supply, beta_value)
    select id, now(), date_trunc('minute', now()), rank, rank, date_trunc('minute', now()), 1e5 * random(), 1e10 * random(), 1.5,
      floor(1e12 * random()), 0.5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1e5, now() - interval '1 year', -3.21,
      floor(1e9 * random()), 1e9, 0, 1.0101
    from market.coin where rank <= ${LISTED}`;
}

/** Ten years of each of the first coins, coin by coin, as backfills write them. */
async function fillCandles(interval: Extract<CandleInterval, '24h' | '1h'>): Promise<void> {
  const { sql } = database;
  const step = interval === '24h' ? DAY : HOUR;
  await ensurePartitions(sql, interval, { from: FROM, to: UNTIL });
  const range = [{ from: FROM, to: UNTIL }];
  const series = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered, answered_at)
    select id, 'usd', ${interval}::market.candle_interval, ${range}::tstzmultirange, ${range}::tstzmultirange, now()
    from market.coin where rank <= ${WITH_CANDLES} order by rank returning id`;
  for (const { id } of series) {
    await sql`
      insert into market.candle (open_time, open, high, low, close, volume, market_cap, series_id, interval)
      select at, p, p * 1.01, p * 0.99, p * 1.001, floor(p * 1e6), floor(p * 1e8), ${id}, ${interval}::market.candle_interval
      from generate_series(${FROM}::timestamptz, ${UNTIL - step}::timestamptz, ${`${step / 1000} seconds`}::interval) at
      cross join lateral (select 100 + 50 * sin(extract(epoch from at) / 1e6) + random() as p) v`;
  }
}

type Load = {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly failures: number;
  readonly answers: number;
};

async function load(url: string, ms = SECONDS * 1_000): Promise<Load> {
  const script = fileURLToPath(new URL('load-process.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, url, String(CONNECTIONS), String(ms)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [out] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(out) as Load;
}

const year = `start=${new Date(UNTIL - 366 * DAY).toISOString().slice(0, 10)}&limit=366`;
const CASES = [
  { name: "one coin's ticker", path: '/v1/tickers/c7-coin-number-7', least: 0.6, mostP99: 25 },
  { name: '366 daily candles', path: `/v1/coins/c1-coin-number-1/ohlcv/historical?${year}`, least: 0.4, mostP99: null },
  { name: `/tickers with ${thousands(LISTED)} coins`, path: '/v1/tickers', least: 0.5, mostP99: null },
] as const;

it('the service is as fast as promised, without more memory', async () => {
  const bodies = await Promise.all(
    CASES.map(async ({ path: asked }) => [asked.replace(/\?.*/, ''), await (await fetch(servedAt + asked)).text()]),
  );
  const file = path.join(folder, 'bodies.json');
  writeFileSync(file, JSON.stringify(bodies));
  bare = spawn(process.execPath, [fileURLToPath(new URL('bare-process.mjs', import.meta.url)), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  bareAt = await said(bare, /(http:\S+)/, 'stdout');
  const rows: [string, string][] = [];
  const sizes: number[] = [];
  for (const { name, path: asked, least, mostP99 } of CASES) {
    await load(servedAt + asked, 1_000);
    await load(bareAt + asked, 1_000);
    const ratios: number[] = [];
    const rates: number[] = [];
    const p99s: number[] = [];
    const costs = { bare: [] as number[], ours: [] as number[], postgres: [] as number[] };
    const backends = await backendsOf('chandler serve');
    for (let round = 0; round < ROUNDS; round++) {
      const bareCpu = cpuSecondsOf([bare.pid!]);
      const yardstick = await load(bareAt + asked);
      costs.bare.push((cpuSecondsOf([bare.pid!]) - bareCpu) / yardstick.answers);
      const cpu = cpuSecondsOf([serving.process.pid!]);
      const cpuOfPostgres = cpuSecondsOf(backends);
      const ours = await load(servedAt + asked);
      costs.ours.push((cpuSecondsOf([serving.process.pid!]) - cpu) / ours.answers);
      costs.postgres.push((cpuSecondsOf(backends) - cpuOfPostgres) / ours.answers);
      expect([yardstick.failures, ours.failures]).toEqual([0, 0]);
      ratios.push(ours.perSecond / yardstick.perSecond);
      rates.push(ours.perSecond);
      p99s.push(ours.p99);
    }
    sizes.push(rssMbOf(serving.process.pid!));
    rows.push([`${name}, requests/s`, thousands(median(rates))]);
    rows.push([`  of the yardstick's (≥ ${least})`, `${spread(ratios)} ${verdict(median(ratios) >= least)}`]);
    // Where other programs run beside it, this figure is more reliable than requests per second.
    const micros = (values: readonly number[]) => (median(values) * 1e6).toFixed(0);
    rows.push([
      '  processor time a request, µs',
      `${micros(costs.ours)}, of Postgres ${micros(costs.postgres)}, of the yardstick ${micros(costs.bare)}`,
    ]);
    const p99 = mostP99 === null ? '' : ` ${verdict(median(p99s) < mostP99)}`;
    rows.push([
      `  p99 at ${CONNECTIONS} connections, ms${mostP99 === null ? '' : ` (< ${mostP99})`}`,
      spread(p99s, 1) + p99,
    ]);
  }
  rows.push(['resident size after each, MB', sizes.map((mb) => mb.toFixed(0)).join(', ')]);
  const most = Number(process.env.CHANDLER_BENCH_SOAK_SECONDS ?? 0);
  const under: number[] = [];
  for (let spent = 0; spent < most; spent += LOOK_SECONDS) {
    await load(servedAt + CASES[(spent / LOOK_SECONDS) % CASES.length]!.path, LOOK_SECONDS * 1_000);
    under.push(rssMbOf(serving.process.pid!));
  }
  if (under.length > 1) {
    // Between two garbage collections the process also holds the lists in flight: the smallest sizes show what stays.
    const half = Math.ceil(under.length / 2);
    const growth = Math.min(...under.slice(half)) / Math.min(...under.slice(0, half));
    rows.push([
      `${most} s of load, MB every ${LOOK_SECONDS} s`,
      `${under.map((mb) => mb.toFixed(0)).join(', ')}; least of the second half against that of the first (flat: ≤ 1.1) ${growth.toFixed(2)} ${verdict(growth <= 1.1)}`,
    ]);
  }
  console.info(table(`served over loopback, median of ${ROUNDS} rounds of ${SECONDS} s`, rows));
});

async function backendsOf(name: string): Promise<number[]> {
  const rows = await database.sql<{ pid: number }[]>`
    select pid from pg_stat_activity where application_name = ${name} and datname = current_database()`;
  return rows.map((row) => row.pid);
}

const QUESTIONS = 1_000;
/** Requests for candles that are made of finer ones: each takes a while. */
const COARSER = 100;

/** Stores a year and more of candles of a single width for two further coins; wider candles are made of those. */
async function fillForCoarser(fine: '5m' | '1h'): Promise<string> {
  const { sql } = database;
  const from = UNTIL - 380 * DAY;
  const rank = WITH_CANDLES + (fine === '5m' ? 1 : 2);
  const coinId = `c${rank}-coin-number-${rank}`;
  // A given database has them from an earlier run.
  const [known] = await sql`select 1 from market.series where coin_id = ${coinId}`;
  if (known !== undefined) {
    await sql`delete from market.rollup_coverage r using market.series s where s.id = r.series_id and s.coin_id = ${coinId}`;
    return coinId;
  }
  const range = [{ from, to: UNTIL }];
  const step = INTERVAL_MS[fine] / 1000;
  await ensurePartitions(sql, fine, { from, to: UNTIL });
  await sql`
    with made as (
      insert into market.series (coin_id, quote, interval, wanted, covered, answered_at)
      select id, 'usd', ${fine}::market.candle_interval, ${range}::tstzmultirange, ${range}::tstzmultirange, now()
      from market.coin where rank = ${rank} returning id
    )
    insert into market.candle (open_time, open, high, low, close, volume, market_cap, series_id, interval)
    select at, p, p * 1.01, p * 0.99, p * 1.001, floor(p * 1e6), floor(p * 1e8), made.id, ${fine}::market.candle_interval
    from made cross join generate_series(${from}::timestamptz, ${UNTIL - step * 1000}::timestamptz, ${`${step} seconds`}::interval) at
    cross join lateral (select 100 + random() as p) v`;
  await sql.unsafe(`analyze market.candle_${fine}`);
  return coinId;
}

it('reads 366 candles, and finds a name among 50,000, in milliseconds', async () => {
  const { sql } = database;
  const data = createWarehouse({ sql, clock: systemClock });
  const [stored] = await sql<
    { n: number }[]
  >`select sum(reltuples)::float8 as n from pg_class where relname like 'candle\\_%' and relkind = 'r'`;
  const ask = (interval: CandleInterval, step: number) => {
    const rank = 1 + Math.floor(Math.random() * WITH_CANDLES);
    const from = FROM + Math.floor(Math.random() * ((UNTIL - FROM) / step - 366)) * step;
    const query = { quote: 'usd', interval, from, to: from + 365 * step, limit: 366 } as const;
    return data.ohlcv({ ...query, coinId: `c${rank}-coin-number-${rank}` });
  };
  const rows: [string, string][] = [
    ['candles stored', thousands(stored!.n)],
    ['in the memory of Postgres before', await readAhead()],
  ];
  for (const [interval, step] of [
    ['24h', DAY],
    ['1h', HOUR],
    ['6h', 6 * HOUR],
  ] as const) {
    const times: number[] = [];
    for (let i = 0; i < QUESTIONS; i++)
      times.push(await timed(async () => expect(await ask(interval, step)).toHaveLength(366)));
    const made = interval === '6h' ? ', made of 2,196 hourly ones' : '';
    rows.push([
      `366 candles of ${interval}${made}, never asked before: p99, ms (< 15)`,
      `${p(times, 0.99).toFixed(1)} ${verdict(p(times, 0.99) < 15)}`,
    ]);
    rows.push(['  p50', p(times, 0.5).toFixed(1)]);
  }
  for (const fine of ['5m', '1h'] as const) {
    const coinId = await fillForCoarser(fine);
    for (const isRolledUp of [false, true]) {
      if (isRolledUp) await rollUp(sql);
      // A warehouse with empty caches.
      const fresh = createWarehouse({ sql, clock: systemClock });
      const times: number[] = [];
      const questions = isRolledUp ? QUESTIONS : COARSER;
      for (let i = 0; i < questions; i++) {
        const to = UNTIL - (i % 14) * DAY;
        // Each query is different.
        const query = {
          coinId,
          quote: 'usd',
          interval: '24h',
          from: to - 366 * DAY,
          to: to - DAY,
          limit: 366 + i,
        } as const;
        times.push(await timed(async () => expect(await fresh.ohlcv(query)).toHaveLength(366)));
      }
      const verdictOf = isRolledUp ? ` ${verdict(p(times, 0.99) < 15)}` : '';
      rows.push([
        `366 candles of 24h, made of ${thousands((366 * DAY) / INTERVAL_MS[fine])} of ${fine}${isRolledUp ? ' ahead of time: p99, ms (< 15)' : `: p99 of ${COARSER}, ms`}`,
        `${p(times, 0.99).toFixed(1)}${verdictOf}`,
      ]);
      rows.push(['  p50', p(times, 0.5).toFixed(1)]);
    }
  }
  const search = (q: string) => data.search({ q, categories: SEARCH_CATEGORIES, symbolOnly: false, limit: 250 });
  rows.push(['the first search, ms', (await timed(() => search('coin'))).toFixed(0)]);
  const found: number[] = [];
  for (let i = 0; i < QUESTIONS; i++) {
    const hex = Math.floor(Math.random() * 2 ** 20).toString(16);
    found.push(await timed(() => search(['coin', hex, `c${i}`, 'nothing at all', hex.slice(0, 2)][i % 5]!)));
  }
  rows.push([
    `search over ${thousands(COINS)} coins: p99, ms (< 10)`,
    `${p(found, 0.99).toFixed(1)} ${verdict(p(found, 0.99) < 10)}`,
  ]);
  // Like a snapshot of tickers.
  await sql`update market.coin set rank = rank where rank < 0`;
  rows.push(['the first search after ranks that are the same, ms', (await timed(() => search('coin'))).toFixed(0)]);
  await sql`update market.coin set rank = rank % 1000 + 1 where rank <= 1000`;
  rows.push(['the first search after 1,000 ranks that are others, ms', (await timed(() => search('coin'))).toFixed(0)]);
  console.info(table(`read from Postgres, ${thousands(QUESTIONS)} questions each, one after the other`, rows));
});

/**
 * The benchmark measures the server and not the disk: whatever fits into the memory of Postgres is read beforehand. Resolves to how much
 * there was, and whether it fitted.
 */
async function readAhead(): Promise<string> {
  const { sql } = database;
  const [is] = await sql<{ size: number; memory: number }[]>`
    select pg_database_size(current_database())::float8 as size,
      (select setting::float8 * 8192 from pg_settings where name = 'shared_buffers') as memory`;
  const gb = (bytes: number) => (bytes / 2 ** 30).toFixed(1);
  const fits = is!.size < is!.memory;
  if (fits) {
    await sql`create extension if not exists pg_prewarm`;
    await sql`
      select pg_prewarm(c.oid) from pg_class c
      where c.relnamespace = 'market'::regnamespace and c.relkind in ('r', 'i')`;
  }
  return `${fits ? 'all' : 'not read ahead'}: ${gb(is!.size)} GB, shared_buffers ${gb(is!.memory)} GB`;
}

function p(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * share)]!;
}
