/** Candles that are not final, or had not closed when they were read: how they affect others, and how they are marked. In a session in New York. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
const MINUTE = 60_000;
/** Monday, the first of January. */
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const EVENING = day(1) + 21 * HOUR;
/** A day in the far future. */
const FAR = Date.UTC(2100, 0, 1);

/** Opens at n, goes from n - 1 to n + 1, closes at n × 1.01. */
const plain = (n: number): CandleValues => [n, n + 1, n - 1, n];
const run = (from: number, count: number) => Array.from({ length: count }, (_, i) => plain(from + i));
const rows = async (found: Promise<readonly object[]>) => (await found).map((row) => ({ ...row }));
const at = "to_char(open_time at time zone 'UTC', 'MM-DD HH24:MI') as at";

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  // A quarter of an hour that was read at 21:23, and the next one that was read at 21:38. The parts are final until 21:40.
  const span = { from: EVENING, to: EVENING + HOUR };
  const quarters = await givenSeries(sql, { coinId: 'aaa-coin', interval: '15m', span });
  await storeAnswer(sql, quarters, { span: { from: EVENING, to: EVENING + 15 * MINUTE }, slots: [plain(100)] });
  await storeAnswer(sql, quarters, {
    span: { from: EVENING + 15 * MINUTE, to: EVENING + 45 * MINUTE },
    slots: [plain(500), plain(600)],
    isFinal: false,
    open: [
      { openTime: EVENING + 15 * MINUTE, closeTime: EVENING + 23 * MINUTE },
      { openTime: EVENING + 30 * MINUTE, closeTime: EVENING + 38 * MINUTE },
    ],
  });
  const parts = await givenSeries(sql, { coinId: 'aaa-coin', interval: '5m', span });
  await storeAnswer(sql, parts, { span: { from: EVENING, to: EVENING + 40 * MINUTE }, slots: run(1, 8) });
  // Two weeks, of which the fifth day was read five minutes after it had begun, and its hours later.
  const two = { from: day(1), to: day(15) };
  for (const coinId of ['bbb-coin', 'ccc-coin']) {
    const days = await givenSeries(sql, { coinId, interval: '24h', span: two });
    await storeAnswer(sql, days, { span: { from: day(1), to: day(5) }, slots: run(1, 4) });
    await storeAnswer(sql, days, {
      span: { from: day(5), to: day(6) },
      slots: [plain(1000)],
      isFinal: false,
      open: [{ openTime: day(5), closeTime: day(5) + 5 * MINUTE }],
    });
    await storeAnswer(sql, days, { span: { from: day(6), to: day(15) }, slots: run(6, 9) });
  }
  const hours = await givenSeries(sql, { coinId: 'bbb-coin', interval: '1h', span: two });
  await storeAnswer(sql, hours, { span: { from: day(5), to: day(6) }, slots: run(1, 24) });
  const coming = await givenSeries(sql, {
    coinId: 'ddd-coin',
    interval: '24h',
    span: { from: FAR, to: FAR + 2 * DAY },
  });
  await storeAnswer(sql, coming, { span: { from: FAR, to: FAR + 2 * DAY }, slots: run(1, 2), isFinal: false });
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

describe('a stored candle that is not final', () => {
  test('is replaced by its parts where these are final', async () => {
    const found = await rows(analyst`
      select ${analyst.unsafe(at)}, open, high, low, close, volume, complete, is_closed
      from market.ohlcv_closed('AAA', '15 minutes', '2024-01-01 21:00', '2024-01-01 21:45')`);
    expect(found).toEqual([
      { at: '01-01 21:00', open: 100, high: 101, low: 99, close: 101, volume: 100, complete: true, is_closed: true },
      { at: '01-01 21:15', open: 4, high: 7, low: 3, close: 6 * 1.01, volume: 15, complete: true, is_closed: true },
      // Here the last part is missing, so only the stored candle is left.
      { at: '01-01 21:30', open: 600, high: 601, low: 599, close: 606, volume: 600, complete: false, is_closed: false },
    ]);
    const [average] = await analyst`
      select slots, volume, complete from market.vwap('AAA', '2024-01-01 21:00', '2024-01-01 21:30', '15 minutes')`;
    expect(average).toEqual({ slots: 2, volume: 115, complete: true });
    const changes = await rows(analyst`
      select round(simple_return::numeric, 4)::float8 as change, complete
      from market.returns('AAA', '15 minutes', '2024-01-01 21:15', '2024-01-01 21:45')`);
    expect(changes).toEqual([
      { change: -0.94, complete: true },
      { change: null, complete: false },
    ]);
    const grid = await rows(analyst`
      select close, complete, reason from market.on_grid('AAA', '15 minutes', '2024-01-01 21:15', '2024-01-01 21:30')`);
    expect(grid).toEqual([{ close: 6 * 1.01, complete: true, reason: null }]);
  });

  test('does not hide the hours of a day, nor the week around it, before and after candles are made ahead', async () => {
    const daysAndWeeks = async () => [
      await rows(analyst`
        select high, volume, slots, complete, is_closed from market.ohlcv_closed('BBB', '1 day', '2024-01-05', '2024-01-06')`),
      await rows(analyst`
        select high, volume, slots, complete, is_closed from market.ohlcv_closed('BBB', '1 week', '2024-01-01', '2024-01-15')`),
    ];
    const expected = [
      [{ high: 25, volume: 300, slots: 1, complete: true, is_closed: true }],
      [
        { high: 25, volume: 1 + 2 + 3 + 4 + 300 + 6 + 7, slots: 7, complete: true, is_closed: true },
        { high: 15, volume: 8 + 9 + 10 + 11 + 12 + 13 + 14, slots: 7, complete: true, is_closed: true },
      ],
    ];
    expect(await daysAndWeeks()).toEqual(expected);
    await rollUp(sql);
    expect(await daysAndWeeks()).toEqual(expected);
    // Without hours, the week has the half day, and is marked so.
    expect(
      await rows(analyst`
        select high, complete, is_closed from market.ohlcv_closed('CCC', '1 week', '2024-01-01', '2024-01-08')`),
    ).toEqual([{ high: 1001, complete: false, is_closed: true }]);
  });
});

describe('a candle that had not closed when it was read', () => {
  test('is not closed, and neither it nor the next one has a return', async () => {
    const closed = await rows(analyst`
      select ${analyst.unsafe(at)}, is_closed from market.ohlcv_closed('CCC', '1 day', '2024-01-04', '2024-01-07')`);
    expect(closed).toEqual([
      { at: '01-04 00:00', is_closed: true },
      { at: '01-05 00:00', is_closed: false },
      { at: '01-06 00:00', is_closed: true },
    ]);
    // Of wider candles, the one that ends with it.
    expect(
      await rows(
        analyst`select ${analyst.unsafe(at)}, is_closed from market.ohlcv_closed('CCC', '3 days', '2024-01-02', '2024-01-09')`,
      ),
    ).toEqual([
      { at: '01-03 00:00', is_closed: false },
      { at: '01-06 00:00', is_closed: true },
    ]);
    const changes = await rows(analyst`
      select simple_return is null as is_null from market.returns('CCC', '1 day', '2024-01-04', '2024-01-08')`);
    expect(changes.map((row) => 'is_null' in row && row.is_null)).toEqual([false, true, true, false]);
    const [volatility] =
      await analyst`select returns, holes from market.realized_volatility('CCC', '2024-01-04', '2024-01-08')`;
    expect(volatility).toEqual({ returns: 2, holes: 2 });
  });

  test('gives a price that is as old as its data', async () => {
    const priceAt = async (when: string, maxAge = '1 day') =>
      (
        await rows(analyst`
          select price, source, to_char(priced_at at time zone 'UTC', 'MM-DD HH24:MI') as priced, age::text
          from market.price_at('CCC', ${when}, ${maxAge}::interval)`)
      )[0];
    const half = { price: 1010, source: '24h candle', priced: '01-05 00:05' };
    expect(await priceAt('2024-01-06')).toEqual({ ...half, age: '23:55:00' });
    expect(await priceAt('2024-01-06 00:05')).toEqual({ ...half, age: '1 day' });
    const none = { price: null, source: null, priced: null, age: null };
    expect(await priceAt('2024-01-06 00:06')).toEqual(none);
    expect(await priceAt('2024-01-06', '1 hour')).toEqual(none);
    expect(await priceAt('2024-01-05')).toMatchObject({ price: 4 * 1.01, priced: '01-05 00:00', age: '00:00:00' });
    // Both at 21:45: the one of 15m was read at 21:38, the one of 5m closed at 21:40.
    const [narrow] = await analyst`select price, source, age::text from market.price_at('AAA', '2024-01-01 21:45')`;
    expect(narrow).toEqual({ price: 8 * 1.01, source: '5m candle', age: '00:05:00' });
    const [largest] = await analyst`
      select to_char(as_of at time zone 'UTC', 'MM-DD HH24:MI') as as_of from market.universe('2024-01-06 12:00', 10) where coin_id = 'ccc-coin'`;
    expect(largest).toEqual({ as_of: '01-05 00:05' });
  });

  test('has no change in an event, and no rate', async () => {
    const steps = await rows(analyst`
      select step, close, change is null as is_null from market.event_study('CCC', '2024-01-04', 1, 2, benchmark => 'BBB')`);
    expect(steps).toEqual([
      { step: -1, close: 3 * 1.01, is_null: false },
      { step: 0, close: 4 * 1.01, is_null: false },
      { step: 1, close: 1010, is_null: true },
      { step: 2, close: 6 * 1.01, is_null: false },
    ]);
    const inDollars = `
      select ${at}, close is null as is_null, rate is null as is_unrated from market.in_quote`;
    const unclosed = [
      { at: '01-04 00:00', is_null: false, is_unrated: false },
      { at: '01-05 00:00', is_null: true, is_unrated: true },
      { at: '01-06 00:00', is_null: false, is_unrated: false },
    ];
    expect(await rows(analyst.unsafe(`${inDollars}('CCC', 'BBB', '1 day', '2024-01-04', '2024-01-07')`))).toEqual(
      unclosed,
    );
    // The other way round, too.
    expect(await rows(analyst.unsafe(`${inDollars}('BBB', 'CCC', '1 day', '2024-01-04', '2024-01-07')`))).toEqual(
      unclosed,
    );
    await sql`insert into market.rate (currency, at, updated_at, price) values ('EUR', ${day(4)}, now(), 2)`;
    expect(
      await rows(analyst.unsafe(`${inDollars}('CCC', 'EUR', '1 day', '2024-01-04', '2024-01-07', '9 days')`)),
    ).toEqual(unclosed);
  });
});

test('a slot that has not ended is not closed and has no return, whatever the upstream says', async () => {
  const closed = await rows(analyst`
    select close, complete, is_closed from market.ohlcv_closed('DDD', '1 day', '2100-01-01', '2100-01-03')`);
  expect(closed).toEqual([
    { close: 1.01, complete: false, is_closed: false },
    { close: 2.02, complete: false, is_closed: false },
  ]);
  expect(
    await rows(analyst`select is_closed from market.ohlcv_closed('DDD', '2 days', '2099-12-30', '2100-01-05')`),
  ).not.toContainEqual({ is_closed: true });
  expect(
    await rows(analyst`select simple_return, complete from market.returns('DDD', '1 day', '2100-01-02', '2100-01-03')`),
  ).toEqual([{ simple_return: null, complete: false }]);
  const [pairs] = await analyst`select pairs from market.correlation('DDD', 'ddd-coin', '2100-01-01', '2100-01-03')`;
  expect(pairs).toEqual({ pairs: 0 });
});
