/** With very many series, the service has counted what is due before the dashboard opens. No visitor waits for a read of each series. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { type Visit, visit } from './visiting.ts';

let database: TestDatabase;
let page: Visit;
beforeAll(async () => {
  database = await createTestDatabase();
  await makeManySeries(database.sql, { coins: Math.ceil(21_000 / SERIES_OF_A_COIN), requests: 0 });
  // However slow the machine is, the visits come at the moment at which everything is prepared.
  page = await visit(database, {}, { speed: 0 });
});
afterAll(async () => {
  await page?.close();
  await database?.drop();
});

/** Prepares until everything is read: on a busy machine that may take longer than `prepare` lasts, and then a visitor would read the rest. */
async function prepareAll(): Promise<void> {
  const timesLate = () => page.log().split('the first page will take longer').length;
  for (let before = -1; before < timesLate(); ) {
    before = timesLate();
    await page.prepare();
  }
}

test('the first visitor of the quota or of any other page causes no read of the tracked series', async () => {
  await prepareAll();
  await database.sql`alter table ops.tracked rename to tracked_away`;
  const quota = await page.look('/ui/quota');
  expect(quota.status, String(page.errors)).toBe(200);
  expect(quota.text).toContain('freshness');
  for (const path of ['/', '/ui/backfills/1', '/ui/keys'])
    expect((await page.look(path)).status, `${path}: ${page.errors}`).toBe(200);
});
