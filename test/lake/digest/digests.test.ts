/** Rows in files have the same digests as in attestations. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nameOfSeries } from '../../../src/core/interval.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { createMonthBook } from '../../../src/lake/digest/month-book.ts';
import { attestedSeries } from '../../../src/lake/verify/against-warehouse.ts';
import { recount } from '../../../src/lake/verify/recount.ts';
import { attest } from '../../../src/views/attestation/attestation.ts';
import { readAllSeries } from '../../../src/views/attestation/read-series.ts';
import { readSeries } from '../../../src/views/attestation/series-line.ts';
import type { Month } from '../../../src/views/attestation/series-state.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { AS_OF, datasets, exportTo, fillAll } from '../filled.ts';
import { temporaryFolder } from '../format/rows.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(() => database?.drop());

test.each(['hive', 'single'] as const)(
  'the files alone give every month, link, record and seal of every series (%s)',
  async (layout) => {
    const { folder, remove } = temporaryFolder();
    await exportTo(database, folder, { datasets: datasets('candles', 'prices'), layout });
    const recounted = await recount(openFolder(folder), { signal: new AbortController().signal });
    const found = new Map<string, unknown>();
    for await (const one of attestedSeries(recounted, () => true)) found.set(nameOfSeries(one), one);
    const expected = new Map<string, unknown>();
    for await (const line of attest(database.sql, { at: AS_OF, key: null })) {
      const series = readSeries(JSON.parse(line));
      if (series !== null) expected.set(nameOfSeries(series), series);
    }
    expect(expected.size).toBe(14);
    expect(found).toEqual(expected);
    remove();
  },
);

test('months are written in a short form and read back', async () => {
  for await (const { coinId, interval, months } of readAllSeries(database.sql)) {
    const book = createMonthBook();
    book.add(coinId, months);
    const encoded = book.encode(coinId, interval)!;
    const again = createMonthBook();
    again.addEncoded(coinId, JSON.parse(JSON.stringify(encoded)), interval, {
      from: Number.NEGATIVE_INFINITY,
      to: Number.POSITIVE_INFINITY,
    });
    const short = months.map((month) => ({ ...month, digest: month.digest.subarray(0, 6) }));
    expect(again.months(coinId)).toEqual(short);
    expect(again.encode(coinId, interval)).toEqual(encoded);
  }
});

test('months may come from several files in pieces, with no coverage between them', () => {
  const month = (year: number, index: number, slots = 28): Month => ({
    from: Date.UTC(year, index),
    candles: slots,
    slots,
    digest: Buffer.alloc(32, index + 1),
  });
  const whole = createMonthBook();
  whole.add('x', [month(2023, 10), month(2023, 11)]);
  whole.add('x', [month(2024, 2), month(2024, 3)]);
  const encoded = whole.encode('x', '24h')!;
  expect(whole.months('x').map(({ slots }) => slots)).toEqual([28, 28, 0, 0, 28, 28]);
  const pieces = createMonthBook();
  for (const year of [2022, 2023, 2024, 2025])
    pieces.addEncoded('x', encoded, '24h', { from: Date.UTC(year, 0), to: Date.UTC(year + 1, 0) });
  expect(pieces.encode('x', '24h')).toEqual(encoded);
  expect(pieces.months('y')).toEqual([]);
  expect(pieces.encode('y', '24h')).toBeNull();
});
