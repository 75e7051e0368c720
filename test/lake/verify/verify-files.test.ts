/** `chandler verify --files` finds and names any difference in the files, and accepts what the warehouse can explain. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeAttestation } from '../../../src/background/attestation/attestation-file.ts';
import { DAY, type Interval } from '../../../src/core/interval.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { FileColumn } from '../../../src/lake/format/format.ts';
import { READERS, WRITERS } from '../../../src/lake/format/open-format.ts';
import type { Layout } from '../../../src/lake/layout/layout.ts';
import { setValue, valueAt } from '../../../src/store/copy/columns.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { makeSeriesOf, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { changeOne } from '../../support/proved-warehouse.ts';
import { AS_OF, COINS, datasets, exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
let series: Map<Interval, number>;
/** One export, and a copy of it for each test. */
let original: string;
let folder: string;
const made: (() => void)[] = [];
const newFolder = () => {
  const { folder: made_, remove } = temporaryFolder();
  made.push(remove);
  return made_;
};
beforeAll(async () => {
  database = await createTestDatabase();
  series = await fillAll(database.sql);
  original = newFolder();
  await exportTo(database, original);
});
afterAll(async () => {
  for (const remove of made) remove();
  await database?.drop();
});
beforeEach(() => {
  folder = newFolder();
  cpSync(original, folder, { recursive: true });
});

type Verified = {
  readonly code: number;
  readonly isEqual: boolean;
  readonly findings: readonly {
    path: string | null;
    series: string | null;
    month: string | null;
    problem: string;
    slots: string[];
  }[];
  readonly warehouse: Record<string, number> | null;
  readonly attestation: Record<string, number> | null;
};

/** Runs without a warehouse unless `env` names one: the home folder has no server. */
async function verify(
  more: readonly string[] = [],
  env: Record<string, string> = {},
  where = folder,
): Promise<Verified> {
  const home = path.join(newFolder(), 'home');
  const { code, out, err } = await runCommand(['verify', '--files', where, '--json', ...more], {
    env: { CHANDLER_HOME: home, ...env },
  });
  expect(err.replace(/^error: .*\n/, '')).toBe('');
  return { code, ...JSON.parse(out) };
}
const withWarehouse = () => ({ DATABASE_URL: database.url });

const CANDLES_2023 = 'candles/interval=24h/quote=usd/year=2023/part.parquet';

/** Changes one value of a file, and writes the file as the export would. */
async function changeValue(
  file: string,
  column: string,
  row: number,
  change: (value: number) => number,
): Promise<void> {
  const manifest = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
  const { columns } = manifest.datasets.find(({ name }: { name: string }) => file.startsWith(name)) as {
    columns: FileColumn[];
  };
  const destination = openFolder(folder);
  const bytes = statSync(path.join(folder, file)).size;
  const read = (await READERS.parquet())({ destination, path: file, bytes, columns });
  await destination.put(file, async (sink) => {
    const writer = (await WRITERS.parquet())(sink, columns);
    let first = 0;
    for await (const batch of read) {
      const at = batch.columns[columns.findIndex(({ name }) => name === column)]!;
      if (row >= first && row < first + batch.rows)
        setValue(at, row - first, change(valueAt(at, row - first) as number));
      first += batch.rows;
      await writer.write(batch);
    }
    await writer.finish();
  });
}

/** Adapts the manifest to the present files: sizes and digests of files, and its own root. */
function forgeManifest(change: (text: string) => string = (text) => text): void {
  const file = path.join(folder, 'manifest.json');
  const lines = change(readFileSync(file, 'utf8'))
    .split('\n')
    .slice(0, -2)
    .map((line) => {
      const [, found] = /^\{"path":"([^"]+)"/.exec(line) ?? [];
      if (found === undefined) return line;
      const bytes = readFileSync(path.join(folder, found));
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      return line.replace(/"bytes":\d+/, `"bytes":${bytes.length}`).replace(/"sha256":"\w+"/, `"sha256":"${sha256}"`);
    });
  const text = `${lines.join('\n')}\n`;
  writeFileSync(file, `${text}"root":"${createHash('sha256').update(text).digest('hex')}"}\n`);
}

describe('an unchanged export', () => {
  test.each([['parquet', 'hive']] as const)(
    'as %s (%s) agrees with its manifest and with the warehouse',
    async (format, layout: Layout) => {
      const where = newFolder();
      const exported = await exportTo(database, where, { format, layout });
      const found = await verify([], withWarehouse(), where);
      expect(found).toMatchObject({ code: 0, isEqual: true, findings: [], files: exported.files, rows: exported.rows });
      expect(found.warehouse).toMatchObject({ tampered: 0, grown: 0, revised: 0 });
      expect(found.warehouse!.equal).toBeGreaterThan(50);
    },
  );

  test.each(['freqtrade', 'lean', 'jesse'] as const)(
    'for %s agrees too, as far as its files allow a check',
    async (layout) => {
      const where = newFolder();
      const format = layout === 'freqtrade' ? 'parquet' : 'csv';
      const coins = { coinIds: ['btc-bitcoin', 'eth-ethereum'], intervals: ['24h'] } as const;
      await exportTo(database, where, { ...coins, datasets: datasets('candles'), format, layout });
      const found = await verify([], withWarehouse(), where);
      expect(found).toMatchObject({ code: 0, findings: [] });
      expect(found.warehouse!.equal).toBeGreaterThan(5);
    },
  );

  test('of a part of the time is compared with the warehouse slot by slot', async () => {
    const where = newFolder();
    const span = { from: Date.UTC(2023, 10, 7), to: Date.UTC(2024, 1, 20) };
    await exportTo(database, where, { span });
    const found = await verify([], withWarehouse(), where);
    expect(found).toMatchObject({ code: 0, findings: [] });
    // A slot in a month of which only a part was exported.
    const [{ id }] = await database.sql<
      [{ id: number }]
    >`select id from market.series where coin_id = 'eth-ethereum' and interval = '24h'`;
    const at = new Date(Date.UTC(2023, 10, 20));
    await database.sql`update market.candle set close = close * 2 where series_id = ${id} and interval = '24h' and open_time = ${at}`;
    const after = await verify([], withWarehouse(), where);
    await database.sql`update market.candle set close = close / 2 where series_id = ${id} and interval = '24h' and open_time = ${at}`;
    expect(after.findings).toEqual([
      expect.objectContaining({
        series: 'eth-ethereum usd 24h',
        month: '2023-11',
        slots: ['2023-11-20T00:00:00.000Z'],
      }),
    ]);
    expect(after.code).toBe(1);
  });

  test('needs no warehouse, and may contain files of a file manager', async () => {
    writeFileSync(path.join(folder, 'candles/.DS_Store'), 'x');
    expect(await verify()).toMatchObject({ code: 0, findings: [], warehouse: null });
  });
});

describe('without a warehouse, verify names', () => {
  test('a changed bit in any file', async () => {
    const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.parquet'));
    expect(files.length).toBeGreaterThan(30);
    for (const name of files) {
      const file = path.join(folder, name);
      const bytes = readFileSync(file);
      const at = Math.floor(bytes.length / 3);
      bytes[at] = bytes[at]! ^ 1;
      writeFileSync(file, bytes);
    }
    const { code, findings } = await verify();
    expect(code).toBe(1);
    const named = findings.filter(({ problem }) => problem === 'has another SHA-256 than in the manifest');
    expect(named.map((found) => found.path).sort()).toEqual(files.sort());
  });

  test('a file that is missing, too long, cut off, or unexpected', async () => {
    rmSync(path.join(folder, 'coins/part.parquet'));
    appendFileSync(path.join(folder, 'tags/part.parquet'), 'x');
    truncateSync(path.join(folder, CANDLES_2023), 1_000);
    copyFileSync(path.join(folder, 'people/part.parquet'), path.join(folder, 'people/other.parquet'));
    const { code, findings } = await verify();
    expect(code).toBe(1);
    expect(findings.map(({ path: name, problem }) => [name, problem.split(' (')[0]])).toEqual([
      [CANDLES_2023, expect.stringMatching(/^has 1 kB/)],
      [CANDLES_2023, 'is not a readable Parquet file'],
      ['coins/part.parquet', 'is missing'],
      ['tags/part.parquet', expect.stringMatching(/^has [\d.]+ kB/)],
      ['tags/part.parquet', 'is not a readable Parquet file'],
      ['people/other.parquet', 'is not named by the manifest'],
    ]);
  });

  test('a changed value with its series and month, even when the manifest was adapted to the file', async () => {
    await changeValue(CANDLES_2023, 'close', 10, (value) => value + 1);
    const problem = expect.stringMatching(/^has other rows of btc-bitcoin usd 24h in 2023-11 than the manifest/);
    const named = { path: CANDLES_2023, series: 'btc-bitcoin usd 24h', month: '2023-11', problem };
    expect((await verify()).findings).toEqual([
      expect.objectContaining({ path: CANDLES_2023, problem: 'has another SHA-256 than in the manifest' }),
      expect.objectContaining(named),
    ]);
    forgeManifest();
    expect((await verify()).findings).toEqual([expect.objectContaining(named)]);
  });

  test('a changed manifest', async () => {
    const file = path.join(folder, 'manifest.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"origin":"made-up"', '"origin":"upstream"'));
    const { code, out, err } = await runCommand(['verify', '--files', folder], { env: {} });
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/manifest\.json is damaged: the SHA-256 of its lines is \w+, but its root is \w+/);
  });

  test('a folder without an export', async () => {
    const { code, err } = await runCommand(['verify', '--files', newFolder()], { env: {} });
    expect(code).toBe(2);
    expect(err).toMatch(/has no manifest.json; name the folder of an export/);
  });
});

/** The forger knows everything: the months in the manifest fit the changed file, too. */
async function forgeAll(file: string, row: number): Promise<void> {
  await changeValue(file, 'close', row, (value) => value * 1.001);
  forgeManifest();
  // The manifest gets what verify computes from the files, as an honest manifest of a warehouse with that value would have.
  const { findings } = await verify();
  expect(findings).toHaveLength(1);
}

describe('against the warehouse', () => {
  test('a value that was changed in a file is named to the slot', async () => {
    await changeValue(CANDLES_2023, 'close', 10, (value) => value + 1);
    const { findings, code } = await verify([], withWarehouse());
    expect(code).toBe(1);
    const [, , of] = findings;
    expect(of).toMatchObject({ path: null, series: 'btc-bitcoin usd 24h', month: '2023-11' });
    expect(of!.slots).toHaveLength(1);
    const [slot] = of!.slots;
    // The tenth row; one slot before it is known to be empty.
    expect(slot).toBe('2023-11-12T00:00:00.000Z');
  });

  test('a changed value and a deleted row in the warehouse are named to the slot', async () => {
    const id = series.get('1h')!;
    const at = (hour: number) => new Date(Date.UTC(2024, 2, 21, hour));
    const row = database.sql`series_id = ${id} and interval = '1h'`;
    const saved = await database.sql`select * from market.candle where ${row} and open_time = ${at(3)}`;
    await database.sql`update market.candle set low = low - 1 where ${row} and open_time = ${at(1)}`;
    await database.sql`delete from market.candle where ${row} and open_time = ${at(3)}`;
    const { findings, code } = await verify([], withWarehouse());
    await database.sql`update market.candle set low = low + 1 where ${row} and open_time = ${at(1)}`;
    const { seriesId: _, interval: __, ...values } = saved[0] as Record<string, unknown>;
    const names = Object.keys(values);
    expect(names).toHaveLength(7);
    await database.sql`insert into market.candle (series_id, interval, open_time, open, high, low, close, volume, market_cap)
      values (${id}, '1h', ${at(3)}, ${values.open as number}, ${values.high as number}, ${values.low as number}, ${values.close as number},
        ${values.volume as number | null}, ${values.marketCap as number | null})`;
    expect(code).toBe(1);
    expect(findings).toEqual([
      expect.objectContaining({
        series: 'btc-bitcoin usd 1h',
        month: '2024-03',
        slots: [at(1).toISOString(), at(3).toISOString()],
      }),
    ]);
  });

  test('changes by a later answer, mended slots and new rows are explained', async () => {
    const copy = await createTestDatabase();
    try {
      await fillAll(copy.sql);
      const where = newFolder();
      await exportTo(copy, where);
      const env = { DATABASE_URL: copy.url };
      expect(await verify([], env, where)).toMatchObject({ code: 0 });
      await changeOne(copy.sql, 1, 7);
      const [{ id }] = await copy.sql<
        [{ id: number }]
      >`select id from market.series where coin_id = 'eth-ethereum' and interval = '24h'`;
      await copy.sql`select ops.uncover(${id}, ${new Date(Date.UTC(2023, 10, 5))}, ${new Date(Date.UTC(2023, 10, 9))})`;
      const span = { from: Date.UTC(2024, 2, 10), to: Date.UTC(2024, 2, 20) };
      for (const chunk of prepareChunks([id], '24h', span)) await storePrepared(copy.sql, chunk, AS_OF + DAY);
      const found = await verify([], env, where);
      expect(found).toMatchObject({ code: 0, findings: [] });
      expect(found.warehouse).toMatchObject({ revised: 2, grown: 1, tampered: 0 });
    } finally {
      await copy.drop();
    }
  });

  test('a changed row of a history is named', async () => {
    await database.sql`update market.rate set price = price * 2 where currency = (select min(currency) from market.rate)`;
    const { findings, code } = await verify([], withWarehouse());
    await database.sql`update market.rate set price = price / 2 where currency = (select min(currency) from market.rate)`;
    expect(code).toBe(1);
    expect(findings).toEqual([
      expect.objectContaining({
        path: 'rates/year=2023/part.parquet',
        problem: expect.stringMatching(
          /has as many rows of the same times as market.rate in the warehouse, but other values/,
        ),
      }),
    ]);
  });

  test('files of another upstream give a single finding that says so', async () => {
    const other = await createTestDatabase();
    try {
      const { findings, code } = await verify([], { DATABASE_URL: other.url });
      expect([code, findings.length]).toEqual([1, 1]);
      expect(findings[0]!.problem).toBe('the warehouse holds data of nothing yet, but the files are of made-up');
    } finally {
      await other.drop();
    }
  });
});

/** The line of a series in a manifest, without its months from 2024 on. */
function until2024(line: string): string {
  const { covered, months, ...rest } = JSON.parse(line.replace(/,$/, ''));
  const end = '2024-01-01T00:00:00.000Z';
  const [first, digests, incomplete = []] = months as [string, string, number[][]?];
  const [year, month] = first.split('-').map(Number) as [number, number];
  const kept = 12 * (2024 - year) + 1 - month;
  const shorter = {
    ...rest,
    covered: (covered as [string, string][])
      .filter(([from]) => from < end)
      .map(([from, to]) => [from, to < end ? to : end]),
    months: [first, digests.slice(0, 8 * kept), incomplete.filter(([i]) => i! < kept)],
  };
  return `${JSON.stringify(shorter)},`;
}

describe('against an attestation', () => {
  let attestation: string;
  beforeAll(async () => {
    attestation = path.join(newFolder(), 'attestation.jsonl');
    await writeAttestation(database.sql, attestation, { at: AS_OF, key: null });
  });

  test('files of the same state are equal, month by month and by the seal', async () => {
    const found = await verify(['--against', attestation]);
    expect(found).toMatchObject({ code: 0, findings: [], warehouse: null });
    expect(found.attestation).toMatchObject({ tampered: 0, changed: 0 });
    expect(found.attestation!.equal).toBeGreaterThan(50);
  });

  test('a changed value is found, whatever the manifest says', async () => {
    await forgeAll(CANDLES_2023, 10);
    const { findings } = await verify(['--against', attestation]);
    expect(findings.at(-1)).toMatchObject({ series: 'btc-bitcoin usd 24h', month: '2023-11' });
    expect(findings.at(-1)!.problem).toMatch(/the attestation is of the same state of this series, but differs/);
  });

  test('months that somebody removed from the files and from the manifest are named', async () => {
    const file = 'candles/interval=24h/quote=usd/year=2024/part.parquet';
    rmSync(path.join(folder, file));
    forgeManifest((text) =>
      text
        .split('\n')
        .filter((line) => !line.startsWith(`{"path":"${file}"`))
        .map((line) => (/^\{"series":"\S+ usd 24h"/.test(line) ? until2024(line) : line))
        .join('\n'),
    );
    expect((await verify()).findings).toEqual([]);
    const { code, findings, attestation: counts } = await verify(['--against', attestation]);
    expect(code).toBe(1);
    const ofBitcoin = findings.filter(({ series: name }) => name === 'btc-bitcoin usd 24h');
    expect(ofBitcoin.map(({ month }) => month)).toEqual(['2024-01', '2024-02', '2024-03']);
    expect(findings.every(({ series: name }) => name?.endsWith(' usd 24h'))).toBe(true);
    expect(ofBitcoin[0]!.problem).toBe(
      'is missing; the attestation has 30 final rows; the attestation is of the same state of this series, but differs',
    );
    expect(counts).toMatchObject({ tampered: findings.length });
  });

  test('series that somebody removed from the files and from the manifest are named, unless retention may have removed them', async () => {
    rmSync(path.join(folder, 'candles/interval=5m'), { recursive: true });
    forgeManifest((text) =>
      text
        .split('\n')
        .filter((line) => !/^\{"series":"\S+ usd 5m"|^\{"path":"candles\/interval=5m/.test(line))
        .join('\n'),
    );
    expect((await verify()).findings).toEqual([]);
    const { code, findings } = await verify(['--against', attestation]);
    expect(code).toBe(1);
    expect(findings.map(({ series: name, month }) => [name, month])).toEqual(
      COINS.map((coin) => [`${coin} usd 5m`, null]),
    );
    expect(findings[0]!.problem).toBe('the series is missing, but it was attested at 2025-01-01 00:00Z');
    const kept = await verify(['--against', attestation], { CHANDLER_KEEP_CANDLES: '5m=90d' });
    expect(kept).toMatchObject({ code: 0, findings: [] });
    expect(kept.attestation).toMatchObject({ removed: COINS.length });
  });

  test('months and series that the options leave out are no difference', async () => {
    const selections = [
      { coinIds: ['btc-bitcoin'] },
      { intervals: ['1h'] },
      { datasets: datasets('prices', 'tickers') },
      { span: { from: Date.UTC(2023, 11, 10), to: Date.UTC(2024, 1, 20) } },
      { finalOnly: true },
      { layout: 'freqtrade', datasets: datasets('candles'), coinIds: ['btc-bitcoin', 'eth-ethereum'] },
    ] as const;
    for (const selection of selections) {
      const where = newFolder();
      await exportTo(database, where, selection);
      const found = await verify(['--against', attestation], {}, where);
      expect([selection, found.code, found.findings]).toEqual([selection, 0, []]);
      expect(found.attestation).toMatchObject({ changed: 0, removed: 0 });
      expect(found.attestation!.equal).toBeGreaterThan(0);
    }
  });

  test('an attestation of another state says nothing about what changed since', async () => {
    const copy = await createTestDatabase();
    try {
      await fillAll(copy.sql);
      await changeOne(copy.sql, 1, 7);
      const where = newFolder();
      await exportTo(copy, where);
      const found = await verify(['--against', attestation], {}, where);
      expect(found).toMatchObject({ code: 0, findings: [] });
      expect(found.attestation).toMatchObject({ changed: 1, tampered: 0 });
      await makeSeriesOf(copy.sql, ['renamed-coin'], '6h', { from: AS_OF, to: AS_OF + DAY });
      await recordRenames(copy.sql, [{ oldId: 'ltc-litecoin', newId: 'renamed-coin', at: AS_OF }], 'changelog');
      expect(await continueHistories(copy.sql, AS_OF)).toBeGreaterThan(0);
      const renamed = newFolder();
      await exportTo(copy, renamed);
      expect(await verify(['--against', attestation], {}, renamed)).toMatchObject({ code: 0, findings: [] });
    } finally {
      await copy.drop();
    }
  });
});
