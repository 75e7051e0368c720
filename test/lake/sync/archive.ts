/** A filled warehouse, a lake, and retention as the schedule runs it. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { withArchive } from '../../../src/background/lake/lake-run.ts';
import { parseConfig } from '../../../src/config.ts';
import { DAY, type Interval } from '../../../src/core/interval.ts';
import { DEFAULT_RETENTION } from '../../../src/core/settings/retention-settings.ts';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { ManifestFile } from '../../../src/lake/manifest/manifest.ts';
import { syncLake } from '../../../src/lake/sync/sync.ts';
import { createLog } from '../../../src/log.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { type CandleArchive, type Removed, removeOld } from '../../../src/store/upkeep/retention.ts';
import { type PreparedChunk, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { runCommand } from '../../support/cli.ts';
import { type FilledDatabase, fillDatabase, type TestDatabase } from '../../support/database.ts';
import { AS_OF, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

/** All days of 2023 are old enough for retention, those of 2024 are not. */
export const NOW = Date.UTC(2025, 5, 1);
const KEPT = '365d';
const KEEP = {
  ...DEFAULT_RETENTION,
  tickers: null,
  fetches: null,
  candles: { ...DEFAULT_RETENTION.candles, '24h': 365 * DAY },
};
export const OLD = { from: Date.UTC(2023, 0, 1), to: Date.UTC(2024, 0, 1) };
const { signal } = new AbortController();

export let database: TestDatabase;
export let series: Map<Interval, number>;
export let folder: string;
let remove: () => void;
export let log: string[];
let filled: FilledDatabase;

export function useLake(): void {
  beforeAll(async () => {
    filled = await fillDatabase(async ({ sql }) => {
      series = await fillAll(sql);
    });
  });
  afterAll(() => filled?.drop());
  beforeEach(async () => {
    database = await filled.copy();
    ({ folder, remove } = temporaryFolder());
    log = [];
  });
  afterEach(async () => {
    remove();
    await database.drop();
  });
}

/** From now on the lake is at this place. */
export function moveTo(another: string): void {
  folder = another;
}

export const sync = (destination: Destination = openFolder(folder)) => {
  const clock = { now: () => NOW, sleep: async () => undefined };
  return syncLake({ database, destination, datasets: ['candles'], clock, signal });
};

/** Runs retention as the schedule does. `change` replaces parts of the archive. */
export function retain(
  change: (archive: CandleArchive) => CandleArchive = (archive) => archive,
  now: number = NOW,
): Promise<Removed> {
  const parsed = parseConfig({ CHANDLER_LAKE_URL: folder });
  if (!('ok' in parsed)) throw new Error(parsed.problems.join());
  const app = { config: parsed.ok, database, log: createLog({ level: 'warn', write: (line) => void log.push(line) }) };
  return withArchive(app, parsed.ok.lake!, (archive) =>
    removeOld(database, { keep: KEEP, now, archive: change(archive) }),
  );
}

export const manifest = () =>
  JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as { files: ManifestFile[] };
export const fileOf2023 = () =>
  manifest().files.find((file) => file.path.includes('interval=24h/quote=usd/year=2023'))!;

export async function candlesOf2023(): Promise<number> {
  const [row] = await database.sql<{ candles: number }[]>`
    select count(*)::int as candles from market.candle where interval = '24h' and open_time < ${OLD.to}`;
  return row!.candles;
}

export async function answerAgain(by: number): Promise<void> {
  const span = { from: Date.UTC(2023, 11, 3), to: Date.UTC(2023, 11, 5) };
  for (const chunk of prepareChunks([series.get('24h')!], '24h', span)) {
    const close = chunk.candles.close.map((value) => value! * by);
    await storePrepared(database.sql, { ...chunk, candles: { ...chunk.candles, close } }, AS_OF + by * DAY);
  }
}

/** A longer retention, and a backfill of the removed year. */
export async function refill(change: (chunk: PreparedChunk) => PreparedChunk = (chunk) => chunk): Promise<void> {
  const { sql } = database;
  await ensurePartitions(sql, '24h', OLD);
  const rows = await sql<{ id: number }[]>`select id from market.series where interval = '24h' order by id`;
  const ids = rows.map(({ id }) => id);
  await sql`update market.series set wanted = wanted + ${[OLD]}::tstzmultirange where id = any(${ids}::int[])`;
  for (const chunk of prepareChunks(ids, '24h', OLD)) await storePrepared(sql, change(chunk), NOW - DAY);
}

export async function verified(...more: string[]) {
  const env = { DATABASE_URL: database.url, CHANDLER_KEEP_CANDLES: `24h=${KEPT}` };
  const { code, out, err } = await runCommand(['verify', '--files', folder, '--json', ...more], { env });
  if (out === '') throw new Error(err);
  return { code, ...JSON.parse(out) } as {
    readonly code: number;
    readonly findings: readonly {
      readonly series: string | null;
      readonly month: string | null;
      readonly problem: string;
    }[];
    readonly warehouse: Readonly<Record<string, number>>;
  };
}

export const DROPPED = { partitions: ['candle_24h_2023'], notArchived: [] };
export const STAYS = { partitions: [], notArchived: ['candle_24h_2023'] };

const env = () => ({ DATABASE_URL: database.url, CHANDLER_LAKE_URL: folder });
export const accept = (...argv: string[]) => runCommand(['lake', 'accept', ...argv], { env: env() });
/** The result of the second check, which reads the database. */
export const checked = async (settings: Record<string, string> = env()) => {
  const { out } = await runCommand(['doctor', '--json'], { env: settings });
  const checks = JSON.parse(out) as { name: string; state: string; found: string; fix?: string }[];
  return checks.filter(({ name, state }) => name === 'lake' && state !== 'ok');
};
