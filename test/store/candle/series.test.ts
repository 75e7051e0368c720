/** Series that are wanted, and read. */
import { describe, expect, test } from 'vitest';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { readSeries } from '../../support/series.ts';
import { asked, coins, database, day, useCoins } from './series.ts';

useCoins();

describe('wantSeries', () => {
  test('makes what is missing, adds to what is there, and answers in the order asked', async () => {
    const [b] = await wantSeries(database.sql, asked({ coinIds: ['b-b'], span: { from: day(10), to: day(12) } }));
    const ids = await wantSeries(database.sql, asked({ coinIds: ['c-c', 'b-b', 'a-a'] }));
    expect(ids[1]).toBe(b);
    expect(await readSeries(database.sql, b!)).toEqual({
      id: b,
      coinId: 'b-b',
      quote: 'usd',
      interval: '24h',
      // A one-off wish for two stretches does not make what lies between them a gap.
      wanted: [
        { from: day(1), to: day(5) },
        { from: day(10), to: day(12) },
      ],
      covered: [],
      firstDataAt: null,
    });
    expect((await readSeries(database.sql, ids[0]!))?.coinId).toBe('c-c');
    expect((await readSeries(database.sql, ids[2]!))?.coinId).toBe('a-a');
    expect(await readSeries(database.sql, 999_999)).toBeNull();
  });

  test('a tracked series has no end, and quotes and intervals are series of their own', async () => {
    const [tracked] = await wantSeries(database.sql, asked({ span: { from: day(1), to: Number.POSITIVE_INFINITY } }));
    const [btc] = await wantSeries(database.sql, asked({ quote: 'btc' }));
    const [hourly] = await wantSeries(database.sql, asked({ interval: '1h' }));
    expect(new Set([tracked, btc, hourly]).size).toBe(3);
    expect((await readSeries(database.sql, tracked!))?.wanted).toEqual([
      { from: day(1), to: Number.POSITIVE_INFINITY },
    ]);
  });

  test('the highest priority stays', async () => {
    const [id] = await wantSeries(database.sql, asked({ priority: 5 }));
    await wantSeries(database.sql, asked({ priority: 1, span: { from: day(7), to: day(8) } }));
    const rows = await database.sql`select priority from market.series where id = ${id!}`;
    expect(rows[0]).toEqual({ priority: 5 });
  });

  test('a coin that the catalogue does not hold is an error, and nothing is half-written', async () => {
    await expect(wantSeries(database.sql, asked({ coinIds: ['a-a', 'nope'] }))).rejects.toMatchObject({
      code: '23503',
    });
    expect(await database.sql`select from market.series`).toHaveLength(0);
  });

  test('the same coin asked for twice gives the same series twice', async () => {
    const ids = await wantSeries(database.sql, asked({ coinIds: ['a-a', 'a-a'] }));
    expect(ids[0]).toBe(ids[1]);
  });

  test('many callers at once, in any order, do not lock each other out', async () => {
    const many = coins(500);
    await recordCoins(database.sql, many, day(1));
    const ids = many.map((c) => c.id);
    const spans = Array.from({ length: 8 }, (_, i) => ({ from: day(1 + 2 * i), to: day(2 + 2 * i) }));
    await Promise.all(
      spans.map((span, i) => wantSeries(database.sql, asked({ coinIds: i % 2 ? ids : ids.toReversed(), span }))),
    );
    const [id] = await wantSeries(database.sql, asked({ coinIds: [ids[77]!], span: spans[0]! }));
    expect((await readSeries(database.sql, id!))?.wanted).toEqual(spans);
    const [row] = await database.sql<{ n: number }[]>`select count(*) as n from market.series`;
    expect(row?.n).toBe(500);
  });
});
