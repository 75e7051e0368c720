/** What the functions return for the time before the upstream renamed a coin. In a session in New York. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenSeries, storeAnswer } from '../../support/given-candles.ts';

const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: day(1), to: day(40) });
  // Both ids have days and answers: each keeps its own.
  for (const [coinId, volume] of [
    ['old-coin', 100],
    ['new-coin', 101],
    ['large-coin', 500],
    ['small-coin', 50],
  ] as const) {
    const series = await givenSeries(sql, { coinId, interval: '24h', span: { from: day(1), to: day(4) } });
    const slots = Array.from({ length: 3 }, () => [10, 11, 9, volume] as const);
    await storeAnswer(sql, series, { span: { from: day(1), to: day(4) }, slots });
  }
  for (const [coin, from, to, price] of [
    ['first-coin', 10, 12, 1],
    ['middle-coin', 12, 14, 2],
    ['last-coin', 14, 16, 3],
  ] as const) {
    await givenSeries(sql, { coinId: coin, interval: '24h', span: { from: day(1), to: day(4) } });
    for (let at = day(from); at < day(to); at += HOUR)
      await sql`insert into market.ticker_history (coin_id, at, updated_at, price, market_cap, rank) values (${coin}, ${at}, ${at}, ${price}, null, 1)`;
  }
  await recordRenames(
    sql,
    [
      { oldId: 'old-coin', newId: 'new-coin', at: day(20) },
      { oldId: 'first-coin', newId: 'middle-coin', at: day(12) },
      { oldId: 'middle-coin', newId: 'last-coin', at: day(14) },
    ],
    'changelog',
  );
  await continueHistories(sql, day(20));
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

test('the price of a renamed coin is that of the tickers under its former ids', async () => {
  const found = await analyst`
    select p.price, p.source, p.age::text
    from unnest(array['2024-01-10 12:30', '2024-01-12 00:00', '2024-01-14 00:30', '2024-01-15 12:00']) with ordinality t(at, n)
    cross join lateral market.price_at('last-coin', t.at) p order by t.n`;
  expect(found.map((row) => ({ ...row }))).toEqual([
    { price: 1, source: 'ticker', age: '00:30:00' },
    { price: 2, source: 'ticker', age: '00:00:00' },
    { price: 3, source: 'ticker', age: '00:30:00' },
    { price: 3, source: 'ticker', age: '00:00:00' },
  ]);
  const [first] = await analyst`select price from market.price_at('first-coin', '2024-01-15 12:00')`;
  expect(first).toEqual({ price: 3 });
});

test('the bars of a renamed coin are made of the tickers under its former ids', async () => {
  const bars = await analyst`
    select to_char(open_time at time zone 'UTC', 'DD') as day, open, close, samples
    from market.prices_sampled('last-coin', '1 day', '2024-01-10', '2024-01-16') order by open_time`;
  expect(bars.map((row) => ({ ...row }))).toEqual(
    [10, 11, 12, 13, 14, 15].map((n) => ({
      day: String(n),
      open: Math.floor(n / 2) - 4,
      close: Math.floor(n / 2) - 4,
      samples: 24,
    })),
  );
});

test('a renamed coin has one place in the universe', async () => {
  const found = await analyst`select place, coin_id from market.universe('2024-01-03', 10)`;
  expect(found.map((row) => ({ ...row }))).toEqual([
    { place: 1, coin_id: 'large-coin' },
    { place: 2, coin_id: 'new-coin' },
    { place: 3, coin_id: 'small-coin' },
  ]);
});

test('an id that the upstream has given to another coin has its own tickers', async () => {
  await sql`update market.coin set is_active = true, last_seen_at = ${day(30)} where id = 'first-coin'`;
  const [found] = await analyst`select price from market.price_at('last-coin', '2024-01-11 12:30')`;
  expect(found).toEqual({ price: null });
});
