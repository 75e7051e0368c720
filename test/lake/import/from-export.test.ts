/** An export of one warehouse, imported into another under a source name, gives the same candles with the same digests. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { runCommand } from '../../support/cli.ts';
import { COINS } from '../filled.ts';
import { files, here, imports, testFormats, useExports } from './from-export.ts';
import { giveCoins } from './given-files.ts';

useExports();

testFormats(['parquet']);

test('a coin that has another id in this warehouse is imported under that id', async () => {
  const { sql } = here;
  await giveCoins(sql, 'xbt-bitcoin');
  await recordRenames(sql, [{ oldId: COINS[0], newId: 'xbt-bitcoin', at: Date.UTC(2026, 0, 1) }], 'changelog');
  const { code, out } = await imports('parquet', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(out).proved.months).toBeGreaterThan(10);
  expect(await sql`select from market.imported_series where coin_id = ${COINS[0]}`).toHaveLength(0);
  await sql`truncate market.coin_rename`;
});

test('an unknown coin makes the import fail; with --skip-wrong only its rows are left out', async () => {
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

test('files that differ from their manifest are refused', async () => {
  const folder = path.join(files.folder, 'changed');
  cpSync(path.join(files.folder, 'csv'), folder, { recursive: true });
  const file = path.join(folder, 'candles.csv');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/,true\n/, ',TRUE\n'));
  const { code, err } = await imports('changed');
  expect(code).toBe(2);
  expect(err).toMatch(
    /changed does not match its manifest: candles.csv has another SHA-256 than in the manifest \(\d+ differences?; chandler verify --files .*changed lists all\)/,
  );
  const manifest = path.join(folder, 'manifest.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/"root".*\n$/, ''));
  expect((await imports('changed')).err).toMatch(/manifest\.json is truncated: it has no root/);
  expect(await here.sql`select from market.imported_series`).toHaveLength(0);
});

test('rows of another import between them are found before anything is stored', async () => {
  const file = files.write('more.csv', 'time,open,high,low,close\n2023-11-09,1,1,1,1\n');
  const env = { DATABASE_URL: here.url };
  // A day that the upstream knows to be empty.
  await runCommand(['import', file, '--source', 'twin', '--coin', COINS[0], '--interval', '24h'], { env });
  const { code, err } = await imports('parquet');
  expect(code).toBe(2);
  expect(err).toMatch(
    /after the import btc-bitcoin usd 24h would have other candles in 2023-11 than the export in .*parquet: \d+ final candles, but the export has \d+\./,
  );
  expect(await here.sql`select candles from market.imported_series`).toEqual([{ candles: 1 }]);
});
