/** Rows that were not stored, and why. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { quarantineRecords } from '../../../src/store/candle/quarantine.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
});
afterAll(() => database.drop());

test('a record counts once for each answer, also if the transaction of an answer is repeated after it was committed', async () => {
  const { sql } = database;
  const records = [{ id: 'btc-bitcoin', reason: 'price: not a number', row: { price: 'x' } }];
  const first = { fetchId: 1, seenAt: Date.UTC(2024, 0, 1) };
  const counts = async () => (await sql<{ times: number }[]>`select times from market.quarantine`).map((r) => r.times);
  await quarantineRecords(sql, 'tickers', records, first);
  await quarantineRecords(sql, 'tickers', records, first);
  expect(await counts()).toEqual([1]);
  await quarantineRecords(sql, 'tickers', records, { fetchId: 2, seenAt: Date.UTC(2024, 0, 2) });
  expect(await counts()).toEqual([2]);
});
