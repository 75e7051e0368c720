/** `market.prices_as_known`: the final prices as the answers had told them at a given instant. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type AnswerOptions, day, newDailySeries, pricesAt, storeAnswer } from '../../support/stored-answers.ts';

const SECOND = 1_000;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const answer = (id: number, span: readonly [number, number], at: number, options: AnswerOptions = {}) =>
  storeAnswer(database.sql, id, span, at, { interval: 'prices-1d', ...options });

type Known = {
  readonly day: number;
  readonly price: number | null;
  readonly volume: number | null;
  readonly knownSince: number;
};

const dayOf = (at: number) => (at - day(0)) / (day(1) - day(0));

async function knownAt(coinId: string, at: number, sql: Sql = database.sql): Promise<Known[]> {
  const rows = await sql<{ time: number; price: number | null; volume: number | null; knownAt: number }[]>`
    select extract(epoch from time)::float8 * 1000 as time, price, volume_24h as volume,
      extract(epoch from known_at)::float8 * 1000 as known_at
    from market.prices_as_known(${at}::timestamptz)
    where coin_id = ${coinId} and interval = '1d' and quote = 'usd' and is_final order by 1`;
  return rows.map((row) => ({
    day: dayOf(row.time),
    price: row.price,
    volume: row.volume,
    knownSince: dayOf(row.knownAt),
  }));
}

/** What an answer that was stored at `knownSince` told about day `n`. */
function told(n: number, knownSince: number, { priceTimes = 1, times = 1, isNull = false } = {}): Known {
  const { close, volume } = pricesAt([day(n)]);
  if (isNull) return { day: n, price: null, volume: null, knownSince };
  return { day: n, price: close[0]! * priceTimes, volume: volume[0]! * times, knownSince };
}

test('no price is known before the first answer, and all of its prices are known from that instant on', async () => {
  const id = await newDailySeries(database.sql, 'first-coin', 'prices-1d');
  await answer(id, [0, 3], 20, { nulls: [1] });
  expect(await knownAt('first-coin', day(20) - SECOND)).toEqual([]);
  const known = [told(0, 20), told(1, 20, { isNull: true }), told(2, 20)];
  expect(await knownAt('first-coin', day(20))).toEqual(known);
  expect(await knownAt('first-coin', day(900))).toEqual(known);
});

test('the old price is known until its revision and the new one from then on; an unchanged price is known since its first answer', async () => {
  const id = await newDailySeries(database.sql, 'revised-coin', 'prices-1d');
  await answer(id, [0, 4], 20, { nulls: [3] });
  // Days 1 and 2 get other prices and volumes; day 3 changes only where it was null.
  await answer(id, [1, 4], 30, { priceTimes: 2, times: 3 });
  await answer(id, [2, 3], 40, { priceTimes: 5, times: 3 });
  const first = [told(0, 20), told(1, 20), told(2, 20), told(3, 20, { isNull: true })];
  expect(await knownAt('revised-coin', day(30) - SECOND)).toEqual(first);
  const second = [1, 2, 3].map((n) => told(n, 30, { priceTimes: 2, times: 3 }));
  expect(await knownAt('revised-coin', day(30))).toEqual([told(0, 20), ...second]);
  expect(await knownAt('revised-coin', day(40) - SECOND)).toEqual([told(0, 20), ...second]);
  const third = [second[0], told(2, 40, { priceTimes: 5, times: 3 }), second[2]];
  expect(await knownAt('revised-coin', day(40))).toEqual([told(0, 20), ...third]);
});

test('a revision may change the volume alone', async () => {
  const id = await newDailySeries(database.sql, 'volume-coin', 'prices-1d');
  await answer(id, [0, 1], 20);
  await answer(id, [0, 1], 30, { times: 7 });
  expect(await knownAt('volume-coin', day(29))).toEqual([told(0, 20)]);
  expect(await knownAt('volume-coin', day(30))).toEqual([told(0, 30, { times: 7 })]);
});

test('an empty slot has no price until its price arrives; a removed price is known until its removal', async () => {
  const id = await newDailySeries(database.sql, 'holes-coin', 'prices-1d');
  await answer(id, [0, 4], 20, { without: [1], toldTwice: true });
  await answer(id, [0, 4], 30, { without: [2], toldTwice: true });
  const days = async (at: number) => (await knownAt('holes-coin', at)).map((row) => [row.day, row.knownSince]);
  const [series] = await database.sql`select covered from market.series where id = ${id}`;
  expect(series!.covered).toEqual([{ from: day(0), to: day(4) }]);
  expect(await days(day(29))).toEqual([
    [0, 20],
    [2, 20],
    [3, 20],
  ]);
  expect(await days(day(30))).toEqual([
    [0, 20],
    [1, 30],
    [3, 20],
  ]);
});

test('a stored price is not known while it can still change', async () => {
  const id = await newDailySeries(database.sql, 'young-coin', 'prices-1d');
  // A price is final one day after its day ends: at day 6, the last final one is that of day 4.
  await answer(id, [0, 6], 6);
  const stored = await database.sql`select is_final from market.prices where coin_id = 'young-coin' order by time`;
  expect(stored.map((row) => row.isFinal)).toEqual([true, true, true, true, true, false]);
  expect((await knownAt('young-coin', day(6))).map((row) => row.day)).toEqual([0, 1, 2, 3, 4]);
  await answer(id, [5, 6], 8, { priceTimes: 3 });
  expect((await knownAt('young-coin', day(7))).map((row) => row.day)).toEqual([0, 1, 2, 3, 4]);
  expect((await knownAt('young-coin', day(8))).at(-1)).toEqual(told(5, 8, { priceTimes: 3 }));
});

test('a mended price is known until it was mended', async () => {
  const id = await newDailySeries(database.sql, 'mended-coin', 'prices-1d');
  await answer(id, [0, 3], 20);
  await database.sql`select ops.uncover(${id}, ${day(1)}::timestamptz, ${day(2)}::timestamptz)`;
  expect(await knownAt('mended-coin', day(25))).toEqual([told(0, 20), told(1, 20), told(2, 20)]);
  expect(await knownAt('mended-coin', Date.now() + SECOND)).toEqual([told(0, 20), told(2, 20)]);
});

test('market.prices_as_known returns prices only, and market.candles_as_known candles only', async () => {
  const id = await newDailySeries(database.sql, 'both-coin', 'prices-1d');
  await answer(id, [0, 2], 20);
  const candles = await newDailySeries(database.sql, 'both-coin');
  expect(candles).not.toBe(id);
  expect(await knownAt('both-coin', day(20))).toHaveLength(2);
  const none =
    await database.sql`select from market.candles_as_known(${day(900)}::timestamptz) where coin_id = 'both-coin'`;
  expect(none).toHaveLength(0);
  const widths = await database.sql`select distinct interval from market.prices_as_known(${day(900)}::timestamptz)`;
  expect(widths.map((row) => row.interval)).toEqual(['1d']);
});

test('a session in another time zone gets the same rows', async () => {
  const elsewhere = createClient({ url: database.url, max: 1 });
  try {
    await elsewhere.unsafe(`set time zone 'America/New_York'`);
    for (const coinId of ['first-coin', 'revised-coin', 'young-coin'])
      for (const at of [day(7), day(20), day(30) - SECOND, day(35), day(900)])
        expect(await knownAt(coinId, at, elsewhere)).toEqual(await knownAt(coinId, at));
    const [row] = await elsewhere`
      select count(*)::int as n from market.prices_as_known('2024-01-21Z') where coin_id = 'first-coin'`;
    expect(row!.n).toBe(3);
  } finally {
    await elsewhere.end({ timeout: 5 });
  }
});
