/** A series is known to be empty in a year in which other series have a file. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { recount } from '../../../src/lake/verify/recount.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { datasets, exportTo } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
const { folder, remove } = temporaryFolder();
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  remove();
  await database?.drop();
});

/** The days of 2024, and the days after them. */
const YEAR = 366;

test.each([
  ['after its last candle', [0, YEAR], [YEAR, 450]],
  ['before its first candle', [YEAR, 450], [0, YEAR]],
] as const)('a series known to be empty %s is covered in the files, without findings', async (_, full, empty) => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(500) });
  const whole = await newDailySeries(sql, `whole-${full[0]}`);
  await storeAnswer(sql, whole, [0, YEAR], 600);
  await storeAnswer(sql, whole, [YEAR, 450], 600);
  const partly = await newDailySeries(sql, `partly-${full[0]}`);
  await storeAnswer(sql, partly, full, 600);
  const [from, to] = empty;
  const without = Array.from({ length: to - from }, (_, i) => from + i);
  // Two answers without candles confirm that the year is empty.
  for (const at of [600, 601]) await storeAnswer(sql, partly, empty, at, { without });
  await exportTo(database, folder, { datasets: datasets('candles') });
  const { findings, series } = await recount(openFolder(folder), { signal: new AbortController().signal });
  expect(findings).toEqual([]);
  expect(series.get(`partly-${full[0]} usd 24h`)?.covered).toEqual([{ from: day(0), to: day(450) }]);
});
