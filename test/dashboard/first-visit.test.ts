/** With very many series, the dashboard has counted what is due before it is open: nobody waits for a look at each series. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { type Visit, visit } from './visiting.ts';

let database: TestDatabase;
let page: Visit;
beforeAll(async () => {
  database = await createTestDatabase();
  await makeManySeries(database.sql, { coins: Math.ceil(21_000 / SERIES_OF_A_COIN), requests: 0 });
  page = await visit(database);
});
afterAll(async () => {
  await page?.close();
  await database?.drop();
});

test('the first visitor of the quota and of any other page looks at no tracked series', async () => {
  await page.prepare();
  await database.sql`alter table ops.tracked rename to tracked_away`;
  const quota = await page.look('/ui/quota');
  expect(quota.status, String(page.errors)).toBe(200);
  expect(quota.text).toContain('freshness');
  for (const path of ['/', '/ui/backfills/1', '/ui/keys']) expect((await page.look(path)).status, path).toBe(200);
});
