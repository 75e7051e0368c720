/**
 * `chandler export` in a process of its own, compared with yardsticks in the same run: Postgres' own COPY of the same rows as CSV, and
 * hyparquet-writer alone on the same columns. `BENCH_EXPORT_ROWS` sets the number of rows (default: one million; fifty million are
 * possible), `BENCH_EXPORT_FORMATS` the formats (default: all).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CANDLES, columnsIn } from '../../src/lake/dataset/series-datasets.ts';
import { BATCH_ROWS } from '../../src/lake/format/format.ts';
import { openParquet } from '../../src/lake/format/write-parquet.ts';
import { type Batch, createBatch } from '../../src/store/copy/columns.ts';
import { readCopy } from '../../src/store/copy/read-copy.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { fillRecorded } from './export-warehouse.ts';
import { type Measured, runMeasured } from './measured-cli.ts';
import { median, table, thousands, timed, verdict } from './rounds.ts';

const ROWS = Number(process.env.BENCH_EXPORT_ROWS ?? 1_000_000);
const ROUNDS = ROWS > 5_000_000 ? 1 : 3;
const FORMATS = (process.env.BENCH_EXPORT_FORMATS ?? 'parquet,arrow,csv,ndjson').split(',');

let database: TestDatabase;
let folder: string;
let coinIds: readonly string[];
let rows: number;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-export-'));
  database = await createTestDatabase({ max: 2 });
  const filled = await fillRecorded(database.sql, ROWS);
  coinIds = filled.coinIds;
  rows = coinIds.length * filled.each;
}, 3_600_000);
afterAll(async () => {
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

const SELECT = `select s.coin_id, c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap, true
  from market.series s cross join lateral (select * from market.candle where series_id = s.id and interval = '1h') c
  order by s.coin_id collate "C", c.open_time`;

/** Bytes that arrived. */
async function copyOut(
  format: 'csv' | 'binary',
  each: (chunks: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(`set work_mem = '512MB'`);
    await each(client.query(copyTo(`copy (${SELECT}) to stdout (format ${format})`)) as AsyncIterable<Buffer>);
  } finally {
    await client.end();
  }
}

const csvOnly = () =>
  timed(() =>
    copyOut('csv', async (chunks) => {
      let bytes = 0;
      for await (const chunk of chunks) bytes += chunk.length;
      expect(bytes).toBeGreaterThan(rows * 50);
    }),
  );

/** A group of rows as the export passes it to the writer. */
async function oneBatch(): Promise<Batch> {
  const batch = createBatch(
    columnsIn(CANDLES.columns, true).map(({ type }) => type),
    BATCH_ROWS,
  );
  await copyOut('binary', async (chunks) => {
    for await (const full of readCopy(chunks, batch, BATCH_ROWS)) {
      expect(full.rows).toBe(BATCH_ROWS);
      return;
    }
  });
  return batch;
}

async function writerOnly(batch: Batch): Promise<number> {
  const writer = openParquet(async () => undefined, columnsIn(CANDLES.columns, true));
  const ms = await timed(async () => {
    for (let i = 0; i < 5; i++) await writer.write(batch);
    await writer.finish();
  });
  return (5 * batch.rows * 1_000) / ms;
}

type Run = Measured & { readonly bytes: number; readonly rows: number };

async function exportAs(format: string, name: string, more: readonly string[] = []): Promise<Run> {
  const out = path.join(folder, name);
  const argv = ['export', '--what', 'candles', '--format', format, '--out', out, '--json', ...more];
  const measured = await runMeasured(argv, { DATABASE_URL: database.url });
  expect(measured.err).toBe('');
  const { export: exported } = JSON.parse(measured.out) as { export: { bytes: number; rows: number } };
  rmSync(out, { recursive: true });
  return { ...measured, ...exported };
}

it('exports 100,000 rows a second or more as Parquet, with at most 34 bytes a candle', async () => {
  const batch = await oneBatch();
  const rounds: { csv: number; writer: number; runs: Record<string, Run> }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const runs: Record<string, Run> = {};
    for (const format of FORMATS) runs[format] = await exportAs(format, `${format}-${round}`);
    rounds.push({ csv: await csvOnly(), writer: await writerOnly(batch), runs });
  }
  const csv = median(rounds.map((one) => (rows * 1_000) / one.csv));
  const writer = median(rounds.map((one) => one.writer));
  const lines = FORMATS.map((format) => {
    const runs = rounds.map((one) => one.runs[format]!);
    for (const run of runs) expect(run.rows).toBe(rows);
    const speed = median(runs.map(({ ms }) => (rows * 1_000) / ms));
    const bytes = runs[0]!.bytes / rows;
    const rss = Math.max(...runs.map(({ rssMb }) => rssMb));
    const goals = format === 'parquet' ? ` ${verdict(speed >= 100_000 && bytes <= 34)}` : '';
    return [
      format,
      `${thousands(speed)} rows/s, ${(speed / csv).toFixed(2)} of COPY, ${bytes.toFixed(1)} bytes a candle, ${thousands(rss)} MB${goals}`,
    ] as const;
  });
  console.info(
    table(
      `${thousands(rows)} recorded candles with noise in all digits, median of ${ROUNDS} (goals: 100,000 rows/s, 34 bytes)`,
      [
        ['yardstick: COPY as CSV', `${thousands(csv)} rows/s`],
        ['yardstick: hyparquet-writer alone', `${thousands(writer)} rows/s`],
        ...lines,
        [
          'Parquet ÷ hyparquet-writer alone',
          median(rounds.map(({ runs, writer: alone }) => (rows * 1_000) / runs.parquet!.ms / alone)).toFixed(2),
        ],
      ],
    ),
  );
});

it('needs no more memory for more rows', async () => {
  const sizes = [...new Set([1 / 16, 1 / 4, 1].map((share) => Math.max(1, Math.round(coinIds.length * share))))];
  const found: (readonly [string, string])[] = [];
  for (const coins of sizes) {
    const { rssMb, rows: exported } = await exportAs('parquet', `size-${coins}`, [
      '--coins',
      coinIds.slice(0, coins).join(','),
    ]);
    found.push([`${thousands(exported)} rows`, `${thousands(rssMb)} MB ${verdict(rssMb < 250)}`]);
  }
  console.info(table('peak resident memory of chandler export --format parquet (goal: below 250 MB)', found));
});

it('writes no file of unchanged data again, and verifies the export', async () => {
  const out = path.join(folder, 'again');
  const argv = ['export', '--what', 'candles', '--out', out, '--json'];
  const env = { DATABASE_URL: database.url };
  await runMeasured(argv, env);
  const again = await runMeasured(argv, env);
  expect(JSON.parse(again.out).export.written.rows).toBe(0);
  const manifest = readFileSync(path.join(out, 'manifest.json'));
  const verified = await runMeasured(['verify', '--files', out, '--json'], env);
  expect(JSON.parse(verified.out)).toMatchObject({ rows, findings: [] });
  const alone = await runMeasured(['verify', '--files', out, '--json'], {
    CHANDLER_HOME: path.join(folder, 'nowhere'),
  });
  expect(JSON.parse(alone.out)).toMatchObject({ rows, findings: [], warehouse: null });
  const speed = ({ ms, rssMb }: Measured) => `${thousands((rows * 1_000) / ms)} rows/s, ${thousands(rssMb)} MB`;
  console.info(
    table('the same export again', [
      ['time', `${thousands(again.ms)} ms`],
      ['manifest', `${thousands(manifest.length)} bytes, ${(manifest.length / coinIds.length).toFixed(0)} a series`],
      ['verify --files', speed(alone)],
      ['verify --files, and the warehouse', speed(verified)],
    ]),
  );
});
