/** What else happens during an import: an imported coin gets another id, and another command drops the source. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { withLockUnlessHeld } from '../../../src/store/connection/lock.ts';
import { IMPORT_LOCK } from '../../../src/store/imported/imported-series.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenSeries, storeAnswer } from '../../support/given-candles.ts';
import { csvOf, giveCoins, HOURS, temporaryFiles } from './given-files.ts';

const RENAMED = Date.UTC(2026, 0, 1);

let database: TestDatabase;
let files: ReturnType<typeof temporaryFiles>;
beforeAll(async () => {
  database = await createTestDatabase();
  files = temporaryFiles();
});
afterAll(async () => {
  files?.remove();
  await database?.drop();
});

const chandler = (...argv: string[]) => runCommand(['import', ...argv], { env: { DATABASE_URL: database.url } });
const importOf = async (coin: string, source: string) => {
  const file = files.write(`${source}.csv`, csvOf(HOURS.slice(0, 24)));
  const { code, err } = await chandler(file, '--source', source, '--coin', coin, '--interval', '1h');
  expect([code, err]).toEqual([0, '']);
};
const owners = async () =>
  (await database.sql`select source || ' ' || coin_id as owner from market.imported_series order by 1`).map(
    ({ owner }) => owner,
  );

test('imported candles of a renamed coin are still compared with those of the upstream', async () => {
  const { sql } = database;
  const from = Math.floor(HOURS[0]!.openTime / DAY) * DAY;
  const span = { from, to: from + 2 * DAY };
  const series = await givenSeries(sql, { coinId: 'old-coin', interval: '1h', span });
  await storeAnswer(sql, series, {
    span,
    slots: Array.from({ length: (2 * DAY) / HOUR }, () => [1, 2, 1, 1] as const),
  });
  await giveCoins(sql, 'new-coin', 'first-coin');
  await importOf('old-coin', 'one');
  await importOf('old-coin', 'both');
  await importOf('first-coin', 'one');
  await recordRenames(
    sql,
    [
      { oldId: 'first-coin', newId: 'old-coin', at: RENAMED },
      { oldId: 'old-coin', newId: 'new-coin', at: RENAMED + 1 },
    ],
    'changelog',
  );
  // After the changelog named the new id, and before the series moved.
  await importOf('new-coin', 'both');
  const whileOneRuns = await withLockUnlessHeld(sql, IMPORT_LOCK, async () => {
    await sql.begin((tx) => continueHistories(tx, RENAMED));
    return owners();
  });
  expect(whileOneRuns).toEqual(['both new-coin', 'both old-coin', 'one first-coin', 'one old-coin']);
  await sql.begin((tx) => continueHistories(tx, RENAMED));
  // Two imports of one source stay separate.
  expect(await owners()).toEqual(['both new-coin', 'both old-coin', 'one first-coin', 'one new-coin']);
  const [found] = await sql`
    select count(*)::int as rows from market.candles_all u join market.candles_all i using (coin_id, quote, interval, open_time)
    where u.source = 'upstream' and i.source = 'one' and u.coin_id = market.coin_of('old-coin') and u.interval = '1h' and u.quote = 'usd'`;
  expect(found).toEqual({ rows: 24 });
  // The next import continues under the new id.
  await importOf('OLD', 'one');
  expect(await owners()).toHaveLength(4);
  expect((await runCommand(['verify'], { env: { DATABASE_URL: database.url } })).code).toBe(0);
});

test('a source cannot be dropped while an import runs', async () => {
  const dropped = await withLockUnlessHeld(database.sql, IMPORT_LOCK, () => chandler('drop', 'one', '--yes'));
  expect([dropped?.code, dropped?.err]).toEqual([2, 'error: An import is running; wait until it has ended.\n']);
  expect((await chandler('drop', 'one', '--yes')).code).toBe(0);
  expect(await owners()).toEqual(['both new-coin', 'both old-coin']);
});
