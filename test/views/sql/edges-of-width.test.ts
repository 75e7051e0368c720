/** A year has twelve months, and a calendar has all of its slots. In a session in New York. */
import { afterAll, beforeAll, expect, test } from 'vitest';
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
