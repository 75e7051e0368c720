/** One snapshot of 50,000 tickers, fetched over HTTP, checked and stored, compared with `COPY` of the same rows. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { SIMULATOR_HEADER } from '../../src/contract/interface/paths.ts';
import type { CoinSummary, Ticker } from '../../src/contract/record/records.ts';
import { formatTime } from '../../src/contract/time.ts';
import { createSimulator } from '../../src/simulate.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { ensureBuilt } from '../support/build.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const COINS = 50_000;
/** One in six of the simulator's coins is dead and has no ticker. */
const COINS_MADE = 60_500;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);

let dist: string;
let database: TestDatabase;
let server: http.Server;
let bodies: { readonly plain: Buffer; readonly packed: Buffer }[];
let served = 0;
beforeAll(async () => {
  dist = await ensureBuilt();
  database = await createTestDatabase({ max: 2 });
  const { coins, tickers } = await readMarket();
  await recordCoins(database.sql, coins, systemClock.now() - 60_000);
  // Every price moves between two snapshots, as real ones do; names are not ASCII, as some real ones are not.
  bodies = [0, 1].map((i) => {
    const moved = tickers.map((ticker) => moveOn(ticker, i));
    const plain = Buffer.from(JSON.stringify(moved));
    return { plain, packed: gzipSync(plain) };
  });
  server = http.createServer((request, response) => {
    const packed = /gzip/.test(request.headers['accept-encoding'] ?? '');
    const body = bodies[served++ % bodies.length]!;
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=UTF-8',
      [SIMULATOR_HEADER]: 'bench',
      ...(packed ? { 'Content-Encoding': 'gzip' } : {}),
    });
    response.end(packed ? body.packed : body.plain);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server?.close();
  await database?.drop();
});

async function readMarket(): Promise<{ coins: CoinSummary[]; tickers: Ticker[] }> {
  const { data } = createSimulator({
    market: 'made-up',
    clock: systemClock,
    coins: COINS_MADE,
    unlimited: true,
    onError: (error) => {
      throw error;
    },
  });
  const tickers = [...(await data.tickers({ quotes: ['USD'] }))].slice(0, COINS);
  return { coins: [...(await data.coins())], tickers };
}

function moveOn(ticker: Ticker, step: number): Ticker {
  const usd = ticker.quotes.USD!;
  const price = (usd.price ?? 1) * (1 + step * 0.01);
  const at = formatTime(Math.floor(systemClock.now() / 60_000) * 60_000 - 60_000);
  return { ...ticker, name: `${ticker.name} 币`, last_updated: at, quotes: { USD: { ...usd, price } } };
}

type Taken = {
  readonly ms: number;
  readonly cpuMs: number;
  readonly fetchMs: number;
  readonly kind: string;
  readonly stored: number;
};

/** In a process of its own, so that this process is free to answer it. */
async function takeSnapshots(count: number): Promise<{ readonly taken: readonly Taken[]; readonly rssMb: number }> {
  const script = fileURLToPath(new URL('snapshot-process.mjs', import.meta.url));
  const { port } = server.address() as AddressInfo;
  // As main.ts sets them.
  const flags = ['--semi-space-growth-factor=1', '--heap-growing-percent=30'];
  const args = [...flags, script, dist, database.url, `http://127.0.0.1:${port}/v1`, String(count)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [[code], out, problems] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  if (code !== 0) throw new Error(`the snapshots ended with ${code}: ${problems}`);
  return JSON.parse(out) as { taken: Taken[]; rssMb: number };
}

/** Milliseconds that the same rows need as binary `COPY` into tables of the same shape, with the same keys. */
async function copySameRows(client: pg.Client): Promise<number> {
  let ms = 0;
  const newest = 'select * from market.ticker_history where at = (select max(at) from market.ticker_history)';
  for (const [name, rows] of [
    ['ticker', 'select * from market.ticker'],
    ['ticker_history', newest],
  ] as const) {
    const bytes = await buffer(client.query(copyTo(`copy (${rows}) to stdout (format binary)`)));
    await client.query(`drop table if exists copied; create table copied (like market.${name} including all)`);
    ms += await timed(async () => {
      const stream = client.query(copyFrom('copy copied from stdin (format binary)'));
      const finished = once(stream, 'finish');
      stream.end(bytes);
      await finished;
    });
  }
  return ms;
}

it('takes a snapshot of 50,000 tickers in less than 3 s with less than 300 MB', async () => {
  const first = await takeSnapshots(1);
  const later = await takeSnapshots(ROUNDS);
  for (const { kind, stored } of [...first.taken, ...later.taken]) {
    expect(kind).toBe('stored');
    expect(stored).toBe(COINS);
  }
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const copies: number[] = [];
  for (let i = 0; i < ROUNDS; i++) copies.push(await copySameRows(client));
  await client.end();

  const seconds = later.taken.map((t) => t.ms / 1000);
  const fetching = later.taken.map((t) => t.fetchMs / 1000);
  const copying = copies.map((ms) => ms / 1000);
  const rss = later.rssMb;
  const sizes = `${(bodies[0]!.plain.length / 1e6).toFixed(0)} MB of JSON, ${(bodies[0]!.packed.length / 1e6).toFixed(0)} MB on the wire`;
  console.info(
    table(`one snapshot of ${thousands(COINS)} tickers (${sizes}), median of ${ROUNDS}`, [
      ['fetched, checked and stored, seconds (< 3)', `${spread(seconds)} ${verdict(median(seconds) < 3)}`],
      ['of which fetched and unpacked', spread(fetching)],
      ['processor time of the process, without the database', spread(later.taken.map((t) => t.cpuMs / 1000))],
      [
        'the first one, into empty tables',
        `${(first.taken[0]!.ms / 1000).toFixed(2)} ${verdict(first.taken[0]!.ms < 3000)}`,
      ],
      ['COPY of the same rows, seconds', spread(copying)],
      ['COPY / all but the fetching', ((median(copying) / (median(seconds) - median(fetching))) as number).toFixed(2)],
      [
        'largest resident size (< 300 MB)',
        `${rss.toFixed(0)} MB ${verdict(rss < 300)}; of a single one ${first.rssMb.toFixed(0)} MB`,
      ],
    ]),
  );
});
