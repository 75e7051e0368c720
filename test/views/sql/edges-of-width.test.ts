/** A year has twelve months, a calendar has all of its slots, and slots do not depend on the zone of a session, which is New York here. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenSeries, storeAnswer } from '../../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
/** Closes of a year of days that go up and down. */
const closes = Array.from({ length: 366 }, (_, i) => 100 + 40 * Math.sin(i / 11));

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  const span = { from: day(1), to: day(367) };
  const series = await givenSeries(sql, { coinId: 'aaa-coin', interval: '24h', span });
  await storeAnswer(sql, series, { span, slots: closes.map((close) => [close, close + 1, close - 1, 1]) });
  // January is wanted, and answered until the 10th.
  const begun = { from: day(1), to: day(10) };
  const january = await givenSeries(sql, { coinId: 'bbb-coin', interval: '24h', span: { from: day(1), to: day(32) } });
  await storeAnswer(sql, january, {
    span: begun,
    slots: closes.slice(0, 9).map((close) => [close, close + 1, close - 1, 1]),
  });
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

test.each([
  ['1 month', 1],
  ['3 months', 3],
  ['4 months', 4],
])('the volatility of returns of %s is annual: a year has twelve months', async (width, months) => {
  const last = Array.from({ length: 12 / months }, (_, i) => (Date.UTC(2024, (i + 1) * months, 1) - FIRST) / DAY - 1);
  const [stored] = await analyst<{ closes: number[] }[]>`
    select array_agg(close order by open_time) as closes from market.ohlcv('AAA', ${width}::interval, '2024-01-01', '2025-01-01')`;
  const ends = stored!.closes;
  expect(ends).toHaveLength(last.length);
  const returns = ends.slice(1).map((close, i) => Math.log(close / ends[i]!));
  const mean = returns.reduce((a, b) => a + b, 0) / returns.length;
  const deviation = Math.sqrt(returns.reduce((a, b) => a + (b - mean) ** 2, 0) / (returns.length - 1));
  const [found] = await analyst<{ volatility: number | null }[]>`
    select volatility from market.realized_volatility('AAA', '2024-01-01', '2025-01-01', ${width}::interval)`;
  expect(found!.volatility).toBeCloseTo(deviation * Math.sqrt(12 / months), 12);
});

test('a calendar is filled for no negative time: an error, and not a calendar without its first slots', async () => {
  const asked = (most: string) =>
    analyst`select count(*)::int as n from market.on_grid('AAA', '1 day', '2024-02-01', '2024-02-11', fill => 'previous', max_fill => ${most}::interval)`;
  await expect(asked('-1 day')).rejects.toThrow('max_fill is -1 days, and must not be negative');
  expect((await asked('0'))[0]).toEqual({ n: 10 });
});

test.each(['1 week', '1 month'])('a last slot of %s that ends after the calendar has its own reason', async (width) => {
  const reasons = async (to: string) =>
    (
      await analyst<{ reason: string | null }[]>`
        select reason from market.on_grid('BBB', ${width}::interval, '2024-01-01', ${to}::text)`
    ).map(({ reason }) => reason);
  const slots = await reasons('2024-01-10');
  expect(slots.at(-1)).toBe('not asked yet');
  expect((await reasons('2024-01-31')).slice(0, slots.length)).toEqual(slots);
});

describe('market.slots_within', () => {
  const slots = async (spans: string, width: string) =>
    (
      await analyst<{ found: string }[]>`
      select array_agg(to_char(lower(r) at time zone 'UTC', 'MM-DD') || '…' || to_char(upper(r) at time zone 'UTC', 'MM-DD'))::text as found
      from unnest(market.slots_within(${spans}::tstzmultirange, ${width}::interval)) r`
    )[0]!.found;

  test('has each day in UTC when summer time ends in the zone of the session', async () => {
    expect(await slots('{[2024-11-03 00:00Z,2024-11-05 00:00Z)}', '1 day')).toBe('{11-03…11-05}');
    expect(await slots('{[2024-03-10 00:00Z,2024-03-12 00:00Z)}', '24 hours')).toBe('{03-10…03-12}');
  });

  test('has the grid of 1970, on which weeks begin on Thursday, and months that begin on the first', async () => {
    expect(await slots('{[2024-01-02 00:00Z,2024-01-31 00:00Z)}', '7 days')).toBe('{01-04…01-25}');
    expect(await slots('{[2024-01-01 00:00Z,2024-03-31 00:00Z)}', '1 month')).toBe('{01-01…03-01}');
    expect(await slots('{[2024-01-02 00:00Z,2024-01-31 00:00Z)}', '1 month')).toBeNull();
  });

  test('keeps spans without a beginning or an end', async () => {
    const [found] = await analyst`
      select market.slots_within('{(,2024-01-02 12:00Z),[2024-03-01 12:00Z,)}', '1 day')
        = '{(,2024-01-02 00:00Z),[2024-03-02 00:00Z,)}'::tstzmultirange as "isRight"`;
    expect(found).toEqual({ isRight: true });
  });

  test('refuses what is no width with a message that says what would be one', async () => {
    await expect(slots('{[2024-01-02 00:00Z,2024-01-31 00:00Z)}', '0')).rejects.toThrow(
      'no whole number of candles makes up a width of 00:00:00',
    );
  });
});

test('a candle that still moves is no close of a drawdown, and no part of an average, however far the span reaches', async () => {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const [past, now] = [
    { from: today - 10 * DAY, to: today },
    { from: today, to: today + DAY },
  ];
  const series = await givenSeries(sql, { coinId: 'ccc-coin', interval: '24h', span: { from: past.from, to: now.to } });
  await storeAnswer(sql, series, { span: past, slots: Array.from({ length: 10 }, (_, i) => [100 - i, 110, 80, 1]) });
  const open = [{ openTime: today, closeTime: today + 1_000 }];
  await storeAnswer(sql, series, { span: now, slots: [[30, 31, 29, 1]], isFinal: false, open });
  const answers = (to: string) =>
    analyst.unsafe(`
      select d.drawdown, extract(epoch from d.trough_at)::float8 * 1000 as trough, d.slots, v.vwap, v.slots as "slotsOfVwap", t.twap,
        d.complete and v.complete and t.complete as "isComplete", d.complete or v.complete or t.complete as "anyComplete"
      from (select '${new Date(past.from).toISOString()}'::timestamptz as since, ${to} as until) span,
        market.max_drawdown('CCC', since, until) d, market.vwap('CCC', since, until) v, market.twap('CCC', since, until) t`);
  const [untilNow] = await answers('now()');
  expect(untilNow).toMatchObject({
    drawdown: expect.closeTo(-0.09, 9),
    trough: today,
    slots: 10,
    slotsOfVwap: 10,
    isComplete: true,
  });
  // A span that is not over is not complete.
  const notOver = { isComplete: false, anyComplete: false };
  expect((await answers("now() + interval '2 days'"))[0]).toEqual({ ...untilNow, ...notOver });
});

describe('market.condition of price series of weeks', () => {
  // Thursdays, as the upstream has them.
  const [from, to] = [Date.UTC(2024, 0, 4), Date.UTC(2024, 0, 18)];
  const conditionOn = async (date: string) =>
    (
      await analyst`
        select condition, reason, slots, final_slots from market.condition('DDD', 'prices-7d', ${date}::text::date)`
    )[0];
  beforeAll(async () => {
    await givenSeries(sql, { coinId: 'ddd-coin', interval: '24h', span: { from, to } });
    await sql`
      insert into market.series (coin_id, quote, interval, wanted, covered)
      select 'ddd-coin', 'usd', 'prices-7d', span, span
      from (select tstzmultirange(tstzrange(${from}::timestamptz, ${to}::timestamptz)) as span) s`;
  });

  test.each(['2024-01-04', '2024-01-08', '2024-01-10', '2024-01-17'])('%s is in a final slot', async (date) => {
    expect(await conditionOn(date)).toEqual({ condition: 'available', reason: 'final', slots: 1, final_slots: 1 });
  });

  test.each(['2024-01-03', '2024-01-18'])('%s is in a slot that nobody wanted', async (date) => {
    expect(await conditionOn(date)).toEqual({ condition: 'missing', reason: 'not wanted', slots: 1, final_slots: 0 });
  });
});

test('a refusal is requested again after 24 hours, in each time zone', async () => {
  await sql`insert into ops.account (id, origin, plan, is_current) values ('a@b', 'https://b', 'free', true)`;
  await sql`
    insert into market.refusal (account_plan, series_id, span, reason, message, refused_at)
    select 'free', id, '[2024-01-10 00:00Z,2024-02-01 00:00Z)', 'forbidden', 'no', '2026-10-31 12:00Z' from market.series where coin_id = 'bbb-coin'`;
  const [gap] = await analyst`
    select to_char(next_ask_at at time zone 'UTC', 'MM-DD HH24:MI') as next from market.gaps where coin_id = 'bbb-coin' and reason = 'forbidden'`;
  expect(gap).toEqual({ next: '11-01 12:00' });
});

test('a week whose last day is known to be empty has a close, and a fall', async () => {
  const span = { from: day(1), to: day(57) };
  const series = await givenSeries(sql, { coinId: 'eee-coin', interval: '24h', span });
  // 100 until the fifth Sunday, then 50 until Saturday, then nothing: the coin died.
  const slots = Array.from({ length: 56 }, (_, i): [number, number, number, number] | null =>
    i < 35 ? [100, 110, 90, 1] : i < 41 ? [50, 60, 40, 1] : null,
  );
  await storeAnswer(sql, series, { span, slots });
  for (const width of ['1 day', '1 week']) {
    const [found] = await analyst`
      select drawdown, complete from market.max_drawdown('EEE', '2024-01-01', '2024-02-26', ${width}::interval)`;
    expect(found).toEqual({ drawdown: expect.closeTo(-0.5, 9), complete: true });
  }
});
