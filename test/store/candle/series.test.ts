/** Wanting series and reading them. */
import { describe, expect, test } from 'vitest';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { readSeries } from '../../support/series.ts';
import { asked, coins, database, day, useCoins } from './series.ts';

useCoins();

describe('wantSeries', () => {
  test('creates missing series, extends existing ones, and returns them in the order requested', async () => {
    const [b] = await wantSeries(database.sql, asked({ coinIds: ['b-b'], span: { from: day(10), to: day(12) } }));
    const ids = await wantSeries(database.sql, asked({ coinIds: ['c-c', 'b-b', 'a-a'] }));
    expect(ids[1]).toBe(b);
    expect(await readSeries(database.sql, b!)).toEqual({
      id: b,
      coinId: 'b-b',
      quote: 'usd',
      interval: '24h',
      // A backfill that wants two spans does not want the time between them.
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

  test('a tracked series has no end, and each quote and interval has a series of its own', async () => {
    const [tracked] = await wantSeries(database.sql, asked({ span: { from: day(1), to: Number.POSITIVE_INFINITY } }));
    const [btc] = await wantSeries(database.sql, asked({ quote: 'btc' }));
    const [hourly] = await wantSeries(database.sql, asked({ interval: '1h' }));
    expect(new Set([tracked, btc, hourly]).size).toBe(3);
    expect((await readSeries(database.sql, tracked!))?.wanted).toEqual([
      { from: day(1), to: Number.POSITIVE_INFINITY },
    ]);
  });

  test('a series keeps the highest priority it was wanted with', async () => {
    const [id] = await wantSeries(database.sql, asked({ priority: 5 }));
    await wantSeries(database.sql, asked({ priority: 1, span: { from: day(7), to: day(8) } }));
    const rows = await database.sql`select priority from market.series where id = ${id!}`;
    expect(rows[0]).toEqual({ priority: 5 });
  });

  test('rejects a coin that the catalogue lacks, and stores nothing', async () => {
    await expect(wantSeries(database.sql, asked({ coinIds: ['a-a', 'nope'] }))).rejects.toMatchObject({
      code: '23503',
    });
    expect(await database.sql`select from market.series`).toHaveLength(0);
  });

  test('a coin that is requested twice gives the same series twice', async () => {
    const ids = await wantSeries(database.sql, asked({ coinIds: ['a-a', 'a-a'] }));
    expect(ids[0]).toBe(ids[1]);
  });

  test('many concurrent callers with the coins in any order do not deadlock', async () => {
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
