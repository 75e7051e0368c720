/**
 * `chandler import` in a process of its own, compared with a yardstick in the same run: a raw binary COPY of rows that are already encoded,
 * into a table like market.imported_candle. `BENCH_IMPORT_ROWS` sets the number of rows (default: one million), `BENCH_IMPORT_FORMATS` the
 * formats.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { fillRecorded } from './export-warehouse.ts';
import { type Measured, runMeasured } from './measured-cli.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const ROWS = Number(process.env.BENCH_IMPORT_ROWS ?? 1_000_000);
const ROUNDS = ROWS > 2_000_000 ? 1 : 3;
const FORMATS = (process.env.BENCH_IMPORT_FORMATS ?? 'parquet,csv').split(',');
const COLUMNS = 'open_time, open, high, low, close, volume, market_cap, series_id, is_final';

let database: TestDatabase;
let folder: string;
let rows: number;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-import-'));
  database = await createTestDatabase({ max: 2 });
  const filled = await fillRecorded(database.sql, ROWS, { withCaps: true, isPossible: true });
  rows = filled.coinIds.length * filled.each;
  for (const format of FORMATS) {
    const out = path.join(folder, format);
    const argv = ['export', '--what', 'candles', '--format', format, '--layout', 'single', '--out', out];
    expect((await runMeasured(argv, { DATABASE_URL: database.url })).err).toBe('');
  }
}, 3_600_000);
afterAll(async () => {
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Up to this many rows, their bytes are kept in memory and sent again for the rest: reading them is no part of the yardstick. */
const KEPT_ROWS = 1_000_000;

/** The bytes that a COPY of the rows sends. */
function encodedRows(): Promise<Buffer[]> {
  return withClient(async (client) => {
    const chunks: Buffer[] = [];
    const select = `select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap, c.series_id, true
      from market.candle c order by c.series_id, c.open_time limit ${KEPT_ROWS}`;
    for await (const chunk of client.query(copyTo(`copy (${select}) to stdout (format binary)`)))
      chunks.push(chunk as Buffer);
    return chunks;
  });
}

/** Rows per second. */
async function copyRows(chunks: readonly Buffer[]): Promise<number> {
  const kept = Math.min(rows, KEPT_ROWS);
  return withClient(async (client) => {
    await client.query('create table market.yardstick (like market.imported_candle including all)');
    const ms = await timed(async () => {
      const stream = client.query(copyFrom(`copy market.yardstick (${COLUMNS}) from stdin (format binary)`));
      const finished = once(stream, 'finish');
      for (const chunk of chunks) if (!stream.write(chunk)) await once(stream, 'drain');
      stream.end();
      await finished;
    });
    await client.query('drop table market.yardstick');
    return (kept * 1_000) / ms;
  });
}

type Run = Measured & { readonly speed: number };

async function importFrom(format: string): Promise<Run> {
  const out = path.join(folder, format);
  // The single file: an export would be verified twice, before and after.
  const file = path.join(out, readdirSync(out).find((name) => name.startsWith('candles'))!);
  const run = await runMeasured(['import', file, '--source', format, '--json'], { DATABASE_URL: database.url });
  expect(run.err).toBe('');
  expect(JSON.parse(run.out)).toMatchObject({ added: rows, wrong: { count: 0 } });
  await database.sql`truncate market.imported_candle, market.imported_series`;
  return { ...run, speed: (rows * 1_000) / run.ms };
}

it('imports at 0.6 of the speed of a raw COPY or faster, with at most 250 MB', async () => {
  const chunks = await encodedRows();
  const rounds: { copy: number; runs: Record<string, Run> }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const runs: Record<string, Run> = {};
    const before = await copyRows(chunks);
    for (const format of FORMATS) runs[format] = await importFrom(format);
    // Before and after: other load on the machine affects both.
    rounds.push({ copy: (before + (await copyRows(chunks))) / 2, runs });
  }
  const lines = FORMATS.map((format) => {
    const ratios = rounds.map(({ copy, runs }) => runs[format]!.speed / copy);
    const speed = median(rounds.map(({ runs }) => runs[format]!.speed));
    const rss = Math.max(...rounds.map(({ runs }) => runs[format]!.rssMb));
    const cpu = median(rounds.map(({ runs }) => (runs[format]!.cpuMs * 1_000) / rows));
    const isMet = median(ratios) >= 0.6 && rss < 250;
    return [
      format,
      `${thousands(speed)} rows/s, ${spread(ratios)} of COPY, ${cpu.toFixed(2)} µs of processor a row, ${thousands(rss)} MB ${verdict(isMet)}`,
    ] as const;
  });
  console.info(
    table(`${thousands(rows)} recorded candles, median of ${ROUNDS} (goals: 0.6 of COPY, 250 MB)`, [
      ['yardstick: raw binary COPY', `${thousands(median(rounds.map(({ copy }) => copy)))} rows/s`],
      ...lines,
    ]),
  );
});
