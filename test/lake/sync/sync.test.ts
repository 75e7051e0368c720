/** The lake: readers of any manifest of the last day find all of its files, and a run writes only what has changed. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY, HOUR, type Interval } from '../../../src/core/interval.ts';
import { DATASET_NAMES } from '../../../src/lake/dataset/datasets.ts';
import type { Destination } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { Exported } from '../../../src/lake/export/export.ts';
import { syncLake } from '../../../src/lake/sync/sync.ts';
import { recount } from '../../../src/lake/verify/recount.ts';
import { replaceLake } from '../../../src/store/work/lake.ts';
import { prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { openDuck } from '../duck.ts';
import { AS_OF, exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

const DATASETS = ['candles', 'prices', 'tickers', 'coins'];
const { signal } = new AbortController();

let database: TestDatabase;
let series: Map<Interval, number>;
let folder: string;
let remove: () => void;
let now: number;
beforeAll(async () => {
  database = await createTestDatabase();
  series = await fillAll(database.sql);
});
afterAll(() => database?.drop());
beforeEach(async () => {
  // Each test has a lake of its own.
  await replaceLake(database.sql, null);
  ({ folder, remove } = temporaryFolder());
  now = Date.UTC(2026, 0, 1);
});
afterEach(() => remove());

function sync(
  destination: Destination = openFolder(folder),
  datasets: readonly string[] = DATASETS,
): Promise<Exported> {
  const clock = { now: () => now, sleep: async () => undefined };
  return syncLake({ database, destination, datasets, clock, signal });
}

/** Paths of data files. */
const filesIn = () =>
  (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.parquet')).sort();

type Manifest = {
  readonly files: readonly { readonly path: string; readonly dataset: string; readonly rows: number }[];
  readonly retired: readonly { readonly path: string; readonly since: string }[];
};
const manifest = (): Manifest => JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
const named = ({ files }: Manifest = manifest()) => files.map((file) => file.path).sort();

/** Stores a later answer about some days of a series, with other closes. */
async function answerAgain(interval: Interval, from: number, to: number, by: number): Promise<void> {
  for (const chunk of prepareChunks([series.get(interval)!], interval, { from, to })) {
    const close = chunk.candles.close.map((value) => value! * by);
    await storePrepared(database.sql, { ...chunk, candles: { ...chunk.candles, close } }, AS_OF + by * DAY);
  }
}

const findings = async (destination = openFolder(folder)) => (await recount(destination, { signal })).findings;

/** A folder that fails when it is to write a file for which `isLast` is true. */
function killedAt(isLast: (file: string) => boolean): Destination {
  const destination = openFolder(folder);
  return {
    ...destination,
    put: (file, write) => (isLast(file) ? Promise.reject(new Error('killed')) : destination.put(file, write)),
  };
}

test('a run writes all datasets, names each file by its state, and verifies without findings', async () => {
  const first = await sync(openFolder(folder), DATASET_NAMES);
  expect(first.files).toBe(first.written.files);
  expect(filesIn()).toEqual(named());
  for (const file of named()) expect(file).toMatch(/^[a-z_]+\/([\w=-]+\/)*part(-q\d|-\d\d)?-[\da-f]{16}\.parquet$/);
  expect(await findings()).toEqual([]);
});

test('a run writes nothing while nothing has changed, not even tables', async () => {
  await sync();
  const before = filesIn();
  now += HOUR;
  const again = await sync();
  expect(again.written).toEqual({ files: 0, rows: 0, bytes: 0 });
  expect(filesIn()).toEqual(before);
  expect(manifest().retired).toEqual([]);
});

test('a run writes only the files whose rows have changed; the former ones stay for a day', async () => {
  await sync();
  const before = manifest();
  now += HOUR;
  await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.1);
  await database.sql`update market.coin set name = 'Bitcoin Core' where id = 'btc-bitcoin'`;
  const second = await sync();
  const changed = named(before).filter((file) => !named().includes(file));
  expect(changed.map((file) => file.replace(/-[\da-f]{16}/, ''))).toEqual([
    'candles/interval=24h/quote=usd/year=2024/part.parquet',
    'coins/part.parquet',
  ]);
  expect([second.written.files, second.removed]).toEqual([2, []]);
  // A reader of the earlier manifest still finds all of its files.
  expect(named(before).filter((file) => !existsSync(path.join(folder, file)))).toEqual([]);
  const since = new Date(now).toISOString();
  expect(manifest().retired).toEqual(changed.map((file) => ({ path: file, since })));
  expect(await findings()).toEqual([]);
  now += DAY - 1;
  expect((await sync()).removed).toEqual([]);
  expect(manifest().retired).toEqual(changed.map((file) => ({ path: file, since })));
  now += 1;
  expect((await sync()).removed).toEqual(changed);
  expect([filesIn(), manifest().retired]).toEqual([named(), []]);
});

test('a run names the file of a state that comes back, and does not remove it', async () => {
  const { sql } = database;
  const name = (text: string) => sql`update market.coin set name = ${text} where id = 'eth-ethereum'`;
  await name('One');
  await sync();
  const [one] = named().filter((file) => file.startsWith('coins/'));
  await name('Two');
  now += HOUR;
  await sync();
  await name('One');
  now += HOUR;
  await sync();
  expect(named()).toContain(one);
  expect(manifest().retired.map((file) => file.path)).not.toContain(one);
  now += 2 * DAY;
  await sync();
  expect(existsSync(path.join(folder, one!))).toBe(true);
  expect(filesIn()).toEqual(named());
});

test('a killed run keeps the earlier manifest and its files; the next one continues, and unnamed files are removed a day later', async () => {
  await sync();
  const before = readFileSync(path.join(folder, 'manifest.json'), 'utf8');
  await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.2);
  await expect(sync(killedAt((file) => file === 'manifest.json'))).rejects.toThrow('killed');
  expect(readFileSync(path.join(folder, 'manifest.json'), 'utf8')).toBe(before);
  expect(named().filter((file) => !existsSync(path.join(folder, file)))).toEqual([]);
  const orphans = filesIn().filter((file) => !named().includes(file));
  expect(orphans).toHaveLength(1);
  // The state has changed once more, so no manifest ever names that file.
  await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.3);
  await sync();
  expect(manifest().retired.map((file) => file.path)).toContain(orphans[0]);
  expect(await findings()).toEqual([]);
  now += DAY;
  expect((await sync()).removed).toContain(orphans[0]);
  expect(filesIn()).toEqual(named());
});

test('a run does not write again what a killed run has finished', async () => {
  await expect(sync(killedAt((file) => file.startsWith('coins/')))).rejects.toThrow('killed');
  const finished = filesIn().length;
  expect(finished).toBeGreaterThan(5);
  const { files, written } = await sync();
  expect(written.files).toBe(files - finished);
  expect(await findings()).toEqual([]);
  expect(existsSync(path.join(folder, '.unfinished'))).toBe(false);
});

test('DuckDB reads the lake by its lists and by its manifest, even while former files exist', async () => {
  await sync();
  await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.4);
  now += HOUR;
  await sync();
  const rows = manifest().files.filter(({ path: file }) => file.startsWith('candles/interval=24h/quote=usd/'));
  const expected = rows.reduce((sum, file) => sum + file.rows, 0);
  const duck = await openDuck();
  await duck.rows(`set variable files = (
    select string_split(trim(content, chr(10)), chr(10)) from read_text('${folder}/_symlink/candles/interval=24h/quote=usd/files.txt'))`);
  expect(await duck.rows(`select count(*)::int from read_parquet(getvariable('files'))`)).toEqual([[expected]]);
  await duck.rows(`set variable files = (
    select list('${folder}/' || file.path) from (select unnest(files) as file from read_json('${folder}/manifest.json', maximum_object_size = 1000000000))
    where file.dataset = 'candles')`);
  expect(
    await duck.rows(`select count(*)::int from read_parquet(getvariable('files'), hive_partitioning = true)
      where interval = '24h' and quote = 'usd'`),
  ).toEqual([[expected]]);
  // A file pattern would also match the former files.
  expect(
    await duck.rows(
      `select count(*)::int > ${expected} from read_parquet('${folder}/candles/interval=24h/quote=usd/**/*.parquet')`,
    ),
  ).toEqual([[true]]);
});

test('verify finds a list that does not fit the manifest, and a file that no manifest names', async () => {
  await sync();
  const list = '_symlink/candles/interval=24h/quote=usd/files.txt';
  writeFileSync(path.join(folder, list), 'elsewhere\n');
  writeFileSync(path.join(folder, 'candles/mine.parquet'), 'x');
  expect((await findings()).map(({ path: file, problem }) => [file, problem])).toEqual([
    [list, 'does not list the files that the manifest names'],
    ['candles/mine.parquet', 'is not named by the manifest'],
  ]);
  await sync();
  // The file is not from the lake: it stays, and only the list is corrected.
  expect((await findings()).map(({ path: file }) => file)).toEqual(['candles/mine.parquet']);
});

test('verify has no findings while a run writes the lake, at whatever moment', async () => {
  await sync();
  const moments = ['_symlink/candles/interval=24h/quote=usd/files.txt', 'manifest.json'];
  for (const [i, moment] of moments.entries()) {
    await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.6 + i / 10);
    const folderNow = openFolder(folder);
    const found: unknown[] = [];
    await sync({
      ...folderNow,
      put: async (file, write) => {
        if (file === moment) found.push(...(await findings()));
        return folderNow.put(file, write);
      },
    });
    expect([moment, found]).toEqual([moment, []]);
  }
  // The manifest is replaced while verify runs.
  await answerAgain('24h', Date.UTC(2024, 0, 3), Date.UTC(2024, 0, 9), 1.8);
  const destination = openFolder(folder);
  let isReplaced = false;
  const slow: Destination = {
    ...destination,
    list: async function* () {
      if (!isReplaced) await sync();
      isReplaced = true;
      yield* destination.list();
    },
  };
  expect(await findings(slow)).toEqual([]);
  expect(isReplaced).toBe(true);
});

test('the datasets of a lake may be changed', async () => {
  await sync();
  const { written } = await sync(openFolder(folder), ['candles', 'coins', 'rates']);
  expect(written.rows).toBeGreaterThan(0);
  expect(new Set(manifest().files.map(({ dataset }) => dataset))).toEqual(new Set(['candles', 'rates', 'coins']));
  expect(existsSync(path.join(folder, '_symlink/tickers'))).toBe(false);
  expect(manifest().retired.some(({ path: file }) => file.startsWith('tickers/'))).toBe(true);
  expect(await findings()).toEqual([]);
});

test('an export into a lake, and a lake over an export, are refused', async () => {
  await sync();
  const before = filesIn();
  await expect(exportTo(database, folder)).rejects.toThrow(
    /is a lake, which the service keeps up to date; name another folder/,
  );
  expect(filesIn()).toEqual(before);
  rmSync(folder, { recursive: true });
  await exportTo(database, folder, { datasets: [] });
  await expect(sync()).rejects.toThrow(/has an export that was made by hand; name an empty place in CHANDLER_LAKE_URL/);
});

test('a lake of another upstream is refused', async () => {
  await sync();
  const { sql } = database;
  const [was] = await sql<{ simulator: string }[]>`select simulator from ops.origin`;
  await sql`update ops.origin set simulator = 'another'`;
  try {
    await expect(sync()).rejects.toThrow(
      `holds data of ${was!.simulator}, but this warehouse has data of another; name another place`,
    );
  } finally {
    await sql`update ops.origin set simulator = ${was!.simulator}`;
  }
});

test('only one process writes at a time', async () => {
  let second: Promise<unknown> | null = null;
  const destination = openFolder(folder);
  await sync({
    ...destination,
    put: (file, write) => {
      second ??= sync().catch((error: unknown) => error);
      return destination.put(file, write);
    },
  });
  expect(await second).toMatchObject({ message: expect.stringMatching(/another export is being written to/) });
});
