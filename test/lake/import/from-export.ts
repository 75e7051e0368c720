/** Two warehouses, and exports of the first. */
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { exportTo, fillAll } from '../filled.ts';
import { giveCoins, temporaryFiles } from './given-files.ts';

export let there: TestDatabase;
export let here: TestDatabase;
export let files: ReturnType<typeof temporaryFiles>;
const names = ['parquet', 'csv', 'ndjson', 'arrow'] as const;

export function useExports(): void {
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
}

export const imports = (folder: string, ...more: string[]) =>
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

export function testFormats(formats: readonly (typeof names)[number][]): void {
  test.each(formats)('an export as %s is imported with the same candles and digests', async (format) => {
    const { code, out, err } = await imports(format);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/whose files match its manifest; left out, as only candles are imported: prices, /);
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
}
