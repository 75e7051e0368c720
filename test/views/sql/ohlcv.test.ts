/** `market.ohlcv` and the functions based on it, in a session in New York. Every expectation is written by hand. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
/** Monday, the first of January. */
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const days = (from: number, to: number) => ({ from: day(from), to: day(to) });

/** Opens at n, goes from n - 1 to n + 1, closes at n × 1.01. */
const plain = (n: number, volume: number | null = n): CandleValues => [n, n + 1, n - 1, volume];
const run = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => plain(from + i));

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  // January whole, except a hole on the 10th; the 17th to 19th were never requested; the 30th has no volume, the 31st no highest price.
  const aaa = await givenSeries(sql, { coinId: 'aaa-coin', interval: '24h', span: days(1, 41) });
  await storeAnswer(sql, aaa, { span: days(1, 17), slots: run(1, 17).map((one, i) => (i === 9 ? null : one)) });
  await storeAnswer(sql, aaa, {
    span: days(20, 41),
    slots: run(20, 41).map((one, i) => (i === 10 ? plain(30, null) : i === 11 ? [31, null, 30, 31] : one)),
  });
  // The 10th of February and the day after are not final.
  await storeAnswer(sql, aaa, { span: days(41, 43), slots: run(41, 43), isFinal: false });
  // Two days of hours.
  const hours = await givenSeries(sql, { coinId: 'bbb-coin', interval: '1h', span: days(1, 3) });
  await storeAnswer(sql, hours, { span: days(1, 3), slots: run(1, 49) });
  await rollUp(sql);
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

type Bar = readonly [
  at: string,
  open: number,
  high: number | null,
  low: number,
  close: number,
  volume: number | null,
  slots: number,
  complete: boolean,
];

async function bars(coin: string, width: string, from: string | null, to: string): Promise<Bar[]> {
  const rows = await analyst<Record<string, Bar[number]>[]>`
    select to_char(open_time at time zone 'UTC', 'YYYY-MM-DD HH24:MI') as at, open, high, low, close, volume, slots, complete,
      to_char(close_time at time zone 'UTC', 'MM-DD HH24:MI:SS') as ends
    from market.ohlcv(${coin}, ${width}::interval, ${from}, ${to})`;
  return rows.map(({ at, open, high, low, close, volume, slots, complete }) => [
    at,
    open,
    high,
    low,
    close,
    volume,
    slots,
    complete,
  ]) as unknown as Bar[];
}
const closes = async (width: string, from: string, to: string) =>
  analyst<{ at: string; ends: string }[]>`
    select to_char(open_time at time zone 'UTC', 'MM-DD HH24:MI') as at, to_char(close_time at time zone 'UTC', 'MM-DD HH24:MI:SS') as ends
    from market.ohlcv('AAA', ${width}::interval, ${from}, ${to})`.then((rows) =>
    rows.map(({ at, ends }) => [at, ends]),
  );

describe('candles of any width', () => {
  test('consist of first, highest, lowest, last and sum of their parts', async () => {
    // Every second day since 1970.
    expect(await bars('AAA', '2 days', '2024-01-03', '2024-01-07')).toEqual([
      ['2024-01-04 00:00', 4, 6, 3, 5 * 1.01, 9, 2, true],
      ['2024-01-06 00:00', 6, 8, 5, 7 * 1.01, 13, 2, true],
    ]);
    expect(await bars('bbb-coin', '3 hours', '2024-01-01', '2024-01-01 06:00')).toEqual([
      ['2024-01-01 00:00', 1, 4, 0, 3 * 1.01, 6, 3, true],
      ['2024-01-01 03:00', 4, 7, 3, 6 * 1.01, 15, 3, true],
    ]);
  });

  test('begin on Monday for weeks, on the first for months, with the first month for quarters; each ends a second before the next', async () => {
    expect(await closes('1 week', '2024-01-02', '2024-01-16')).toEqual([
      ['01-08 00:00', '01-14 23:59:59'],
      ['01-15 00:00', '01-21 23:59:59'],
    ]);
    expect(await closes('1 month', '2024-01-01', '2024-02-02')).toEqual([
      ['01-01 00:00', '01-31 23:59:59'],
      ['02-01 00:00', '02-29 23:59:59'],
    ]);
    expect(await closes('3 months', '2024-01-01', '2024-02-02')).toEqual([['01-01 00:00', '03-31 23:59:59']]);
    expect(await closes('1 year', '2023-06-01', '2024-02-02')).toEqual([['01-01 00:00', '12-31 23:59:59']]);
  });

  test('are complete despite a slot known to be empty, and incomplete with one that was never requested', async () => {
    expect(await bars('AAA', '1 week', '2024-01-08', '2024-01-22')).toEqual([
      ['2024-01-08 00:00', 8, 15, 7, 14 * 1.01, 8 + 9 + 11 + 12 + 13 + 14, 6, true],
      ['2024-01-15 00:00', 15, 22, 14, 21 * 1.01, 15 + 16 + 20 + 21, 4, false],
    ]);
    // The empty day has no candle of its own.
    expect((await bars('AAA', '1 day', '2024-01-09', '2024-01-12')).map(([at]) => at)).toEqual([
      '2024-01-09 00:00',
      '2024-01-11 00:00',
    ]);
  });

  test('have no volume, or no highest price, when a part lacks it', async () => {
    expect(await bars('AAA', '1 week', '2024-01-29', '2024-02-05')).toEqual([
      ['2024-01-29 00:00', 29, null, 28, 35 * 1.01, null, 7, true],
    ]);
  });

  test('include parts that are not final yet, and are incomplete then', async () => {
    expect(await bars('AAA', '1 day', '2024-02-09', '2024-02-12')).toEqual([
      ['2024-02-09 00:00', 40, 41, 39, 40 * 1.01, 40, 1, true],
      ['2024-02-10 00:00', 41, 42, 40, 41 * 1.01, 41, 1, false],
      ['2024-02-11 00:00', 42, 43, 41, 42 * 1.01, 42, 1, false],
    ]);
    expect(await bars('AAA', '1 week', '2024-02-05', '2024-02-12')).toEqual([
      ['2024-02-05 00:00', 36, 43, 35, 42 * 1.01, 36 + 37 + 38 + 39 + 40 + 41 + 42, 7, false],
    ]);
  });

  test('are the same for weeks and months whether made ahead or now', async () => {
    const made = async () => [
      await bars('AAA', '1 week', null, '2024-03-01'),
      await bars('AAA', '1 month', null, '2024-03-01'),
    ];
    const before = await made();
    const ahead = await sql<{ period: string; at: string }[]>`
      select period, to_char(open_time, 'MM-DD') as at from market.calendar_candle where coin_id = 'aaa-coin' order by 1, 2`;
    // The month has a gap; the weeks are all that are whole and final.
    expect(ahead.map(({ period, at }) => `${period} ${at}`)).toEqual([
      'week 01-01',
      'week 01-08',
      'week 01-22',
      'week 01-29',
    ]);
    await sql`delete from market.calendar_coverage`;
    expect(await sql`select from market.calendar_candle`).toHaveLength(0);
    expect(await made()).toEqual(before);
    await rollUp(sql);
    expect(await made()).toEqual(before);
    expect(before.map((rows) => rows.length)).toEqual([6, 2]);
  });

  test('reject a width that stored slots cannot make up', async () => {
    for (const width of ['7 minutes', '1 second', '0', '-1 day', '1 month 1 day']) {
      await expect(bars('AAA', width, '2024-01-01', '2024-02-01'), width).rejects.toThrow(
        /no whole number of candles makes up/,
      );
    }
    await expect(analyst`select from market.ohlcv('AAA', '1 day', '2024-01-01', '2024-02-01', 'eur')`).rejects.toThrow(
      'there are no candles in eur',
    );
    await expect(bars('aa', '1 day', '2024-01-01', '2024-02-01')).rejects.toThrow('no coin is called aa');
  });

  test('are none for an empty or reversed range, or without a series', async () => {
    expect(await bars('AAA', '1 day', '2024-01-05', '2024-01-05')).toEqual([]);
    expect(await bars('AAA', '1 day', '2024-01-05', '2024-01-01')).toEqual([]);
    expect(await bars('AAA', '1 hour', '2024-01-01', '2024-01-05')).toEqual([]);
    expect(await analyst`select from market.ohlcv('AAA', '1 day', null, null, 'btc')`).toHaveLength(0);
    expect(await bars('AAA', '1 day', null, 'infinity')).toHaveLength(15 + 21 + 2);
  });

  test('of a renamed coin include its history, under the new and the old id', async () => {
    const old = await givenSeries(sql, { coinId: 'old-coin', interval: '24h', span: days(1, 15) });
    await storeAnswer(sql, old, { span: days(1, 15), slots: run(1, 15) });
    await rollUp(sql);
    await givenSeries(sql, { coinId: 'new-coin', interval: '24h', span: days(1, 15) });
    await recordRenames(sql, [{ oldId: 'old-coin', newId: 'new-coin', at: day(20) }], 'changelog');
    await continueHistories(sql, day(20));
    const weeks = [
      ['2024-01-01 00:00', 1, 8, 0, 7 * 1.01, 28, 7, true],
      ['2024-01-08 00:00', 8, 15, 7, 14 * 1.01, 77, 7, true],
    ];
    for (const name of ['old-coin', 'OLD', 'new-coin'])
      expect(await bars(name, '1 week', null, '2024-02-01'), name).toEqual(weeks);
    await rollUp(sql);
    expect(await bars('old-coin', '1 week', null, '2024-02-01')).toEqual(weeks);
  });
});

describe('returns', () => {
  const returns = async (width: string, from: string, to: string) =>
    analyst<{ at: string; simple: number | null; log: number | null }[]>`
      select to_char(open_time at time zone 'UTC', 'MM-DD') as at, simple_return as simple, log_return as log
      from market.returns('AAA', ${width}::interval, ${from}, ${to})`.then((rows) => rows.map((row) => ({ ...row })));

  test('are from close to close, the first one from the candle before', async () => {
    expect(await returns('1 day', '2024-01-02', '2024-01-04')).toEqual([
      { at: '01-02', simple: 1, log: Math.log(2) },
      { at: '01-03', simple: expect.closeTo(0.5), log: expect.closeTo(Math.log(1.5)) },
    ]);
    expect((await returns('1 day', '2024-01-01', '2024-01-02'))[0]).toEqual({ at: '01-01', simple: null, log: null });
  });

  test('never span a hole or a gap', async () => {
    const found = await returns('1 day', '2024-01-09', '2024-01-22');
    expect(found.filter(({ simple }) => simple === null).map(({ at }) => at)).toEqual(['01-11', '01-20']);
    expect(found.map(({ at }) => at)).not.toContain('01-10');
  });

  test('of a month that lacks its last day are null, because its last close is not that of the month', async () => {
    const [january, february, ...more] = await returns('1 month', '2024-01-01', '2024-03-01');
    expect([january?.simple, more]).toEqual([null, []]);
    expect(february).toEqual({ at: '02-01', simple: null, log: null });
  });

  test('volatility, drawdown and correlation say how many values they are based on', async () => {
    const [volatility] = await analyst`select * from market.realized_volatility('AAA', '2024-01-02', '2024-01-13')`;
    // Ten returns, except the one after the hole.
    const logs = [2, 3, 4, 5, 6, 7, 8, 9].map((n) => Math.log(n / (n - 1))).concat(Math.log(12 / 11));
    const mean = logs.reduce((a, b) => a + b) / logs.length;
    const deviation = Math.sqrt(logs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (logs.length - 1));
    expect(volatility).toEqual({ volatility: expect.closeTo(deviation * Math.sqrt(365)), returns: 9, holes: 1 });
    const [drawdown] = await analyst`
      select drawdown, to_char(peak_at at time zone 'UTC', 'MM-DD HH24') as peak, slots, complete from market.max_drawdown('AAA', '2024-01-02', '2024-01-13')`;
    expect(drawdown).toEqual({ drawdown: 0, peak: '01-03 00', slots: 10, complete: true });
    const [correlation] =
      await analyst`select * from market.correlation('AAA', 'aaa-coin', '2024-01-02', '2024-01-13')`;
    expect(correlation).toEqual({ correlation: expect.closeTo(1), pairs: 9 });
    const [none] = await analyst`select * from market.correlation('AAA', 'bbb-coin', '2024-01-05', '2024-01-13')`;
    expect(none).toEqual({ correlation: null, pairs: 0 });
  });

  test('a drawdown is found between the highest close and the lowest one after it', async () => {
    const ccc = await givenSeries(sql, { coinId: 'ccc-coin', interval: '24h', span: days(1, 7) });
    const slots = [4, 8, 2, 3, 8, 4].map((n) => plain(n));
    await storeAnswer(sql, ccc, { span: days(1, 7), slots });
    const [found] = await analyst`
      select drawdown, to_char(peak_at at time zone 'UTC', 'MM-DD') as peak, to_char(trough_at at time zone 'UTC', 'MM-DD') as trough
      from market.max_drawdown('CCC', '2024-01-01', '2024-01-07')`;
    expect(found).toEqual({ drawdown: -0.75, peak: '01-03', trough: '01-04' });
  });

  test('average prices are by volume and by time; there is none by volume where a volume is unknown', async () => {
    // The means of high, low and close, or of all four, are n, except for the close, which is a hundredth higher.
    const typical = (n: number) => (n + 1 + (n - 1) + n * 1.01) / 3;
    const [weighted] = await analyst`select * from market.vwap('AAA', '2024-01-01', '2024-01-04')`;
    expect(weighted).toEqual({
      vwap: expect.closeTo((typical(1) * 1 + typical(2) * 2 + typical(3) * 3) / 6),
      volume: 6,
      slots: 3,
      complete: true,
    });
    const [unknown] = await analyst`select * from market.vwap('AAA', '2024-01-29', '2024-02-02')`;
    expect(unknown).toEqual({ vwap: null, volume: null, slots: 4, complete: true });
    const [timed] = await analyst`select * from market.twap('BBB', '2024-01-01', '2024-01-01 02:00', '1 hour')`;
    expect(timed).toEqual({ twap: expect.closeTo((4.01 + 8.02) / 8), slots: 2, complete: true });
    const [nothing] = await analyst`select * from market.twap('BBB', '2025-01-01', '2025-02-01')`;
    expect(nothing).toEqual({ twap: null, slots: 0, complete: false });
  });
});
