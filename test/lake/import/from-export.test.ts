/** An export of one warehouse, imported into another, is the same candles with the same digests, under a name of their own. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { COINS, exportTo, fillAll } from '../filled.ts';
import { giveCoins, temporaryFiles } from './given-files.ts';

let there: TestDatabase;
let here: TestDatabase;
let files: ReturnType<typeof temporaryFiles>;
const names = ['parquet', 'csv', 'ndjson', 'arrow'] as const;
beforeAll(async () => {
  [there, here] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await fillAll(there.sql);
  const ids = await there.sql<{ id: string }[]>`select id from market.coin`;
  await giveCoins(here.sql, ...ids.map(({ id }) => id));
  files = temporaryFiles();
  for (const format of names)
    await exportTo(there, path.join(files.folder, format), { format, layout: format === 'csv' ? 'single' : 'hive' });
});
afterAll(async () => {
  files?.remove();
  await Promise.all([there?.drop(), here?.drop()]);
});
beforeEach(async () => {
  await here.sql`truncate market.imported_candle, market.imported_series`;
});

const imports = (folder: string, ...more: string[]) =>
  runCommand(['import', path.join(files.folder, folder), '--source', 'twin', ...more], {
    env: { DATABASE_URL: here.url },
  });

type Digested = {
  readonly coinId: string;
  readonly interval: string;
  readonly candles: number;
  readonly digest: string;
};
const digests = (database: TestDatabase, table: 'series' | 'imported_series') =>
  database.sql<Digested[]>`
    select coin_id, quote, interval, candles, digest::text from ${database.sql(`market.${table}`)}
    where interval <= '24h' and candles > 0 order by 1, 2, 3`;
const rows = ({ sql }: TestDatabase, source: string) => sql`
  select coin_id, quote, interval, open_time, open, high, low, close, volume, market_cap, is_final from market.candles_all
  where source = ${source} and made_of is null order by 1, 2, 3, 4`;

test.each(names)('as %s', async (format) => {
  const { code, out, err } = await imports(format);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(/whose files are what its manifest says; left out, as only candles are imported: prices, /);
  expect(out).toMatch(/\nRecounted from the table: \d+ months of \d+ series have the digests of the manifest\.\n/);
  const expected = await digests(there, 'series');
  expect(expected.length).toBeGreaterThan(8);
  expect(await digests(here, 'imported_series')).toEqual(expected);
  expect(await rows(here, 'twin')).toEqual(await rows(there, 'upstream'));
  expect((await runCommand(['verify'], { env: { DATABASE_URL: here.url } })).code).toBe(0);
  const again = JSON.parse((await imports(format, '--json')).out);
  expect(again).toMatchObject({ outcome: 'stored', added: 0, wrong: { count: 0 } });
  expect(again.proved.months).toBeGreaterThan(10);
});

test('a coin that has another id here', async () => {
  const { sql } = here;
  await giveCoins(sql, 'xbt-bitcoin');
  await recordRenames(sql, [{ oldId: COINS[0], newId: 'xbt-bitcoin', at: Date.UTC(2026, 0, 1) }], 'changelog');
  const { code, out } = await imports('parquet', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(out).proved.months).toBeGreaterThan(10);
  expect(await sql`select from market.imported_series where coin_id = ${COINS[0]}`).toHaveLength(0);
  await sql`truncate market.coin_rename`;
});

test('a coin that is not known here: refused, and with --skip-wrong only its rows are left out', async () => {
  const { sql } = here;
  await sql`update market.coin set id = 'gone', symbol = 'GONE' where id = ${COINS[2]}`;
  const refused = await imports('parquet');
  expect([refused.code, await sql`select from market.imported_series`]).toEqual([2, []]);
  expect(refused.err).toContain(`no coin is called ${COINS[2]}`);
  const { code, out } = await imports('parquet', '--skip-wrong', '--json');
  const { wrong, proved } = JSON.parse(out);
  expect([code, wrong.reasons]).toEqual([0, [{ reason: `no coin is called ${COINS[2]}`, rows: wrong.count }]]);
  expect(proved.series).toBeGreaterThan(2);
  const of = (coin: string) => sql`select from market.imported_series where coin_id = ${coin}`;
  expect((await of(COINS[0])).length).toBeGreaterThan(0);
  expect(await of(COINS[2])).toHaveLength(0);
  await sql`truncate market.imported_candle, market.imported_series`;
  await sql`update market.coin set id = ${COINS[2]}, symbol = 'LTC' where id = 'gone'`;
});

test('files that are not what the manifest says are refused', async () => {
  const folder = path.join(files.folder, 'changed');
  cpSync(path.join(files.folder, 'csv'), folder, { recursive: true });
  const file = path.join(folder, 'candles.csv');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/,true\n/, ',TRUE\n'));
  const { code, err } = await imports('changed');
  expect(code).toBe(2);
  expect(err).toMatch(
    /changed is not what its manifest says: candles.csv has other bytes than the manifest says \(SHA-256\) \(\d+ differences?; chandler verify --files .*changed names all\)/,
  );
  const manifest = path.join(folder, 'manifest.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/"root".*\n$/, ''));
  expect((await imports('changed')).err).toMatch(/manifest\.json is cut off: it has no root/);
  expect(await here.sql`select from market.imported_series`).toHaveLength(0);
});

test('rows of another import that are between them are found before anything is stored', async () => {
  const file = files.write('more.csv', 'time,open,high,low,close\n2023-11-09,1,1,1,1\n');
  const env = { DATABASE_URL: here.url };
  // A day that upstream knows to be empty.
  await runCommand(['import', file, '--source', 'twin', '--coin', COINS[0], '--interval', '24h'], { env });
  const { code, err } = await imports('parquet');
  expect(code).toBe(2);
  expect(err).toMatch(
    /after the import btc-bitcoin usd 24h would have other candles in 2023-11 than the export in .*parquet: \d+ final candles, and the export has \d+\./,
  );
  expect(await here.sql`select candles from market.imported_series`).toEqual([{ candles: 1 }]);
});

test('layouts of other programs: refused, and freqtrade file by file', async () => {
  for (const layout of ['lean', 'jesse', 'freqtrade'] as const) {
    const format = layout === 'freqtrade' ? 'arrow' : 'csv';
    const selection = { layout, format, datasets: (await import('../filled.ts')).datasets('candles') } as const;
    await exportTo(there, path.join(files.folder, layout), { ...selection, intervals: ['24h'], coinIds: [...COINS] });
    const { code, err } = await imports(layout);
    expect(code).toBe(2);
    expect(err).toContain(`has the layout ${layout}, from which candles cannot be read back exactly`);
  }
  const env = { DATABASE_URL: here.url };
  const { readdirSync } = await import('node:fs');
  const folder = path.join(files.folder, 'freqtrade');
  const file = (readdirSync(folder, { recursive: true }) as string[]).find((name) =>
    /BTC.*\.(feather|arrow)$/.test(name),
  )!;
  const read = await runCommand(
    ['import', path.join(folder, file), '--source', 'f', '--coin', 'BTC', '--interval', '24h', '--json'],
    { env },
  );
  expect(read.err).toBe('');
  expect(JSON.parse(read.out).added).toBeGreaterThan(50);
  const said = await imports('parquet', '--coin', 'BTC');
  expect(said.err).toContain('is an export, which says itself what is in it; leave out --coin');
});
