import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readSeries, type WantedSeries, wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { packetsOf } from '../../support/steps.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const day = (n: number) => Date.UTC(2024, 0, n);
const asked = (rest: Partial<WantedSeries>): WantedSeries => ({
  coinIds: ['a-a', 'b-b', 'c-c'],
  quote: 'usd',
  interval: '24h',
  span: { from: day(1), to: day(5) },
  priority: 0,
  ...rest,
});
const coins = (n: number, prefix = 'c') =>
  Array.from({ length: n }, (_, i) => `${prefix}${i}-coin`).map((id) => ({
    id,
    name: id,
    symbol: 'X',
    rank: 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));

beforeEach(async () => {
  await database.sql`truncate market.coin cascade`;
  await recordCoins(
    database.sql,
    ['a-a', 'b-b', 'c-c'].map((id) => ({ ...coins(1)[0]!, id })),
    day(1),
  );
});

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

  test('50,000 series are wanted in few steps, the first time and again', { timeout: 300_000 }, async () => {
    const many = coins(50_000, 'm');
    await recordCoins(database.sql, many, day(1));
    const coinIds = many.map((c) => c.id);
    for (const span of [
      { from: day(1), to: day(5) },
      { from: day(8), to: day(9) },
      { from: day(8), to: day(9) },
    ]) {
      let ids: readonly unknown[] = [];
      const packets = await packetsOf(database, async (sql) => {
        ids = await wantSeries(sql, asked({ coinIds, span }));
      });
      expect(ids).toHaveLength(50_000);
      expect(packets).toBeLessThan(1_000);
      // As autovacuum leaves it when it looks before the insert is committed: pages, and no rows in them.
      await database.sql`update pg_class set reltuples = 0, relpages = 700 where oid = 'market.series'::regclass`;
    }
  });
});
