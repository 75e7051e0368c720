/** Numbers that once looked complete and were not, as an analyst reported them. In a session in New York. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
/** Monday, the first of January. */
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const plain = (n: number): CandleValues => [n, n + 1, n - 1, 1];
const rows = async (found: Promise<readonly object[]>) => (await found).map((row) => ({ ...row }));

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  // Five months. 20 to 31 March were never requested; the 30th of April and the 10th of May are known to be empty.
  const span = { from: day(1), to: day(153) };
  const series = await givenSeries(sql, { coinId: 'aaa-coin', interval: '24h', span });
  const store = (from: number, to: number, empty: readonly number[] = []) =>
    storeAnswer(sql, series, {
      span: { from: day(from), to: day(to) },
      slots: Array.from({ length: to - from }, (_, i) => (empty.includes(from + i) ? null : plain(from + i))),
    });
  await store(1, 80);
  await store(92, 153, [121, 131]);
  // Hours of one of its days: the third and the fourth are missing.
  const hours = await givenSeries(sql, { coinId: 'bbb-coin', interval: '1h', span: { from: day(1), to: day(2) } });
  const slots = Array.from({ length: 24 }, (_, i) => (i === 2 || i === 3 ? null : plain(i + 1)));
  await storeAnswer(sql, hours, { span: { from: day(1), to: day(2) }, slots });
  await rollUp(sql);
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

test('a candle says whether its close is that of its slot', async () => {
  const found = await rows(analyst`
    select to_char(open_time at time zone 'UTC', 'MM') as month, slots, complete, is_closed
    from market.ohlcv_closed('AAA', '1 month', '2024-03-01', '2024-06-01')`);
  expect(found).toEqual([
    { month: '03', slots: 19, complete: false, is_closed: false },
    { month: '04', slots: 29, complete: true, is_closed: false },
    { month: '05', slots: 30, complete: true, is_closed: true },
  ]);
});

describe('a return never spans a hole inside of a slot', () => {
  test('of months: null where this one or the one before lacks its last day, whether known to be empty or unknown', async () => {
    const found = await rows(analyst`
      select to_char(open_time at time zone 'UTC', 'MM') as month, close_time - open_time > interval '27 days' as is_whole,
        round(previous_close) as before, round(simple_return::numeric, 4)::float8 as simple, log_return is null as is_null, complete
      from market.returns('AAA', '1 month', '2024-01-01', '2024-06-01')`);
    expect(found).toEqual([
      { month: '01', is_whole: true, before: null, simple: null, is_null: true, complete: false },
      { month: '02', is_whole: true, before: 31, simple: 0.9355, is_null: false, complete: true },
      { month: '03', is_whole: true, before: 61, simple: null, is_null: true, complete: false },
      { month: '04', is_whole: true, before: null, simple: null, is_null: true, complete: false },
      { month: '05', is_whole: true, before: null, simple: null, is_null: true, complete: false },
    ]);
  });

  test('of weeks, where holes in the middle do no harm, and of hours', async () => {
    const weeks = await rows(analyst`
      select to_char(open_time at time zone 'UTC', 'MM-DD') as week, simple_return is null as is_null, complete
      from market.returns('AAA', '1 week', '2024-03-11', '2024-05-20')`);
    expect(weeks.filter((week) => 'is_null' in week && week.is_null)).toEqual([
      // One ends in the hole, the other comes after it.
      { week: '03-18', is_null: true, complete: false },
      { week: '04-01', is_null: true, complete: false },
    ]);
    expect(weeks).toContainEqual({ week: '04-29', is_null: false, complete: true });
    expect(weeks).toContainEqual({ week: '05-06', is_null: false, complete: true });
    const hours = await rows(analyst`
      select extract(hour from open_time at time zone 'UTC')::int as hour, simple_return is null as is_null
      from market.returns('BBB', '3 hours', '2024-01-01', '2024-01-01 12:00')`);
    expect(hours).toEqual([
      { hour: 0, is_null: true },
      { hour: 3, is_null: true },
      { hour: 6, is_null: false },
      { hour: 9, is_null: false },
    ]);
  });

  test('of weeks, whether they were made ahead or now', async () => {
    const weeks = () =>
      rows(analyst`
        select open_time::text, simple_return, complete from market.returns('AAA', '1 week', '2024-01-01', '2024-06-01')`);
    const before = await weeks();
    expect(await sql`select from market.calendar_candle where coin_id = 'aaa-coin'`).not.toHaveLength(0);
    await sql`delete from market.calendar_coverage where coin_id = 'aaa-coin'`;
    expect(await weeks()).toEqual(before);
  });

  test('and volatility counts it as a hole, while correlation leaves it out', async () => {
    const [volatility] =
      await analyst`select returns, holes from market.realized_volatility('AAA', '2024-02-01', '2024-06-01', '1 month')`;
    expect(volatility).toEqual({ returns: 1, holes: 3 });
    const [correlation] =
      await analyst`select pairs from market.correlation('AAA', 'AAA', '2024-02-01', '2024-06-01', '1 month')`;
    expect(correlation).toEqual({ pairs: 1 });
  });
});

describe('averages and drawdowns', () => {
  const asked = async (from: string | null, to: string, width: string) =>
    (
      await rows(analyst`
        select v.slots as vwap, v.complete, t.complete = v.complete and d.complete = v.complete and t.slots = v.slots and d.slots = v.slots as is_one
        from market.vwap('AAA', ${from}, ${to}, ${width}::interval) v, market.twap('AAA', ${from}, ${to}, ${width}::interval) t,
          market.max_drawdown('AAA', ${from}, ${to}, ${width}::interval) d`)
    )[0];

  test('are complete only when each slot of the span is final', async () => {
    expect(await asked('2024-01-01', '2024-02-01', '1 day')).toEqual({ vwap: 31, complete: true, is_one: true });
    // One day is known to be empty.
    expect(await asked('2024-04-05', '2024-05-05', '1 day')).toEqual({ vwap: 29, complete: true, is_one: true });
    expect(await asked('2024-03-01', '2024-05-01', '1 day')).toEqual({ vwap: 48, complete: false, is_one: true });
    // Before the first day, and after the last.
    expect(await asked('2023-12-01', '2024-01-10', '1 day')).toEqual({ vwap: 9, complete: false, is_one: true });
    expect(await asked('2024-05-20', '2024-07-01', '1 day')).toEqual({ vwap: 12, complete: false, is_one: true });
    expect(await asked(null, '2024-01-10', '1 day')).toEqual({ vwap: 9, complete: true, is_one: true });
    expect(await asked('2024-01-01', '2024-03-01', '1 month')).toEqual({ vwap: 2, complete: true, is_one: true });
    expect(await asked('2024-05-20', '2024-05-20', '1 day')).toEqual({ vwap: 0, complete: false, is_one: true });
  });

  test('use slots that lie entirely in the span, and nothing that came after it', async () => {
    expect(await asked('2024-01-15', '2024-01-19', '1 week')).toEqual({ vwap: 0, complete: false, is_one: true });
    expect(await asked('2024-01-10', '2024-01-31', '1 week')).toEqual({ vwap: 2, complete: true, is_one: true });
    const [volatility] = await analyst`
      select returns, holes from market.realized_volatility('AAA', '2024-01-08', '2024-01-31', '1 week')`;
    expect(volatility).toEqual({ returns: 3, holes: 0 });
    const [correlation] =
      await analyst`select pairs from market.correlation('AAA', 'AAA', '2024-01-08', '2024-01-31', '1 week')`;
    expect(correlation).toEqual({ pairs: 3 });
  });
});

test('the age of a ticker is counted from its update at the upstream, not from its reading', async () => {
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: day(1), to: day(400) });
  const seen = (at: number, updatedAt: number, price: number) => sql`
    insert into market.ticker_history (coin_id, at, updated_at, price, rank) values ('aaa-coin', ${at}, ${updatedAt}, ${price}, 1)`;
  await seen(day(300), day(200), 7);
  const at = async (when: string, maxAge = '1 day') =>
    (await rows(analyst`select price, source, age::text from market.price_at('AAA', ${when}, ${maxAge}::interval)`))[0];
  expect(await at('2024-10-27')).toEqual({ price: null, source: null, age: null });
  expect(await at('2024-10-27', '200 days')).toEqual({ price: 7, source: 'ticker', age: '101 days' });
  // It had not been read before.
  expect(await at('2024-10-25', '200 days')).toMatchObject({ source: '24h candle' });
  // A candle that closed after the update is younger, although the ticker was read after it.
  await seen(day(100) + HOUR, day(99), 8);
  expect(await at('2024-04-09 02:00')).toMatchObject({ source: '24h candle', age: '02:00:00' });
});

test('a null instant gives no rows instead of those of now', async () => {
  for (const kind of ['timestamptz', 'text', 'date', 'timestamp']) {
    for (const name of ['candles_as_known', 'prices_as_known'])
      expect(await analyst.unsafe(`select from market.${name}(null::${kind})`), name).toHaveLength(0);
  }
  expect((await analyst`select from market.candles_as_known(now())`).length).toBeGreaterThan(100);
  for (const kind of ['text', 'date', 'timestamptz'])
    expect(
      await analyst.unsafe(`select from market.event_study('AAA', null::${kind}, benchmark => 'BBB')`),
    ).toHaveLength(0);
  expect(await analyst`select from market.condition('AAA', '24h', null)`).toHaveLength(0);
});

test('an unknown interval is an error that names all intervals', async () => {
  for (const call of [
    "market.width_of('7d')",
    "market.series_of('AAA', '1d')",
    "market.condition('AAA', '1d', '2024-01-01')",
  ]) {
    const refused = await analyst.unsafe(`select * from ${call}`).catch((error: unknown) => error);
    expect(refused, call).toMatchObject({
      message: expect.stringMatching(/^there is no interval (1|7)d$/),
      hint: expect.stringContaining('12h, 24h, prices-5m'),
    });
  }
  const [known] = await analyst`
    select market.width_of('6h')::text as width, market.series_of('AAA', '24h') = market.series_of('AAA', i.interval) as is_one, c.condition
    from (select '24h'::market.candle_interval as interval) i, market.condition('AAA', '24h', '2024-01-01') c`;
  expect(known).toEqual({ width: '06:00:00', is_one: true, condition: 'available' });
});

test('when no rate is stored, the error for a currency says so and does not call it an unknown coin', async () => {
  const inQuote = (currency: string) =>
    analyst`select from market.in_quote('AAA', ${currency}, '1 day', '2024-01-01', '2024-01-03')`;
  const refused = await inQuote('eur').catch((error: unknown) => error);
  expect(refused).toMatchObject({
    message: 'no rates are stored, so nothing can be told in EUR',
    hint: expect.stringContaining('The schedule rates of chandler service collects them'),
  });
  await expect(inQuote('nothing')).rejects.toThrow('no coin is called nothing');
  expect(await inQuote('BBB')).toHaveLength(2);
  await sql`insert into market.rate (currency, at, updated_at, price) values ('CHF', now(), now(), 2)`;
  await expect(inQuote('EUR')).rejects.toThrow('no coin is called EUR');
});
