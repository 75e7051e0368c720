/** Arguments at the edge and missing values: no rows, null, or an error that names the argument. In a session in New York. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';
import { coinNamed } from '../../support/stored-answers.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
/** Before version 17, Postgres has no infinite interval. */
let endless = 'infinity';
/** Monday, the first of January. */
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const days = { from: day(1), to: day(15) };
const run = (from: number, count: number): CandleValues[] =>
  Array.from({ length: count }, (_, i) => [from + i, from + i + 1, from + i - 1, 1]);
const rows = async (found: Promise<readonly object[]>) => (await found).map((row) => ({ ...row }));
/** The rows of a call as texts. */
const given = async (call: string) =>
  (await analyst.unsafe<{ row: string }[]>(`select to_jsonb(a)::text as row from ${call} a`)).map(({ row }) => row);
const refusalOf = async (call: string) => {
  const refused = await analyst.unsafe(`select * from ${call}`).then(
    (found) => ({ message: `${found.length} rows`, hint: '' }),
    (error: Error & { hint?: string }) => error,
  );
  return [refused.message, refused.hint];
};

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  const [server] = await sql<{ version: number }[]>`select current_setting('server_version_num')::int as version`;
  if (server!.version < 170_000) endless = '6000 years';
  const aaa = await givenSeries(sql, { coinId: 'aaa-coin', interval: '24h', span: days });
  await storeAnswer(sql, aaa, { span: days, slots: run(10, 14) });
  const hours = await givenSeries(sql, { coinId: 'aaa-coin', interval: '1h', span: { from: day(1), to: day(2) } });
  await storeAnswer(sql, hours, { span: { from: day(1), to: day(1) + 4 * HOUR }, slots: run(100, 4) });
  // The second day has no highest price, the third no lowest.
  const bbb = await givenSeries(sql, { coinId: 'bbb-coin', interval: '24h', span: days });
  await storeAnswer(sql, bbb, {
    span: days,
    slots: run(10, 14).map(([o, h, l, v], i) => [o, i === 1 ? null : h, i === 2 ? null : l, v]),
  });
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

describe('an average', () => {
  test('by volume or by time is null where a price is unknown', async () => {
    for (const [from, to, slots] of [
      ['2024-01-01', '2024-01-03', 2],
      ['2024-01-03', '2024-01-06', 3],
    ] as const) {
      expect(await rows(analyst`select * from market.vwap('BBB', ${from}, ${to})`)).toEqual([
        { vwap: null, volume: slots, slots, complete: true },
      ]);
      expect(await rows(analyst`select * from market.twap('BBB', ${from}, ${to})`)).toEqual([
        { twap: null, slots, complete: true },
      ]);
    }
    const [whole] = await analyst`
      select v.slots, v.vwap between 13 and 15 as by_volume, t.twap between 13 and 15 as by_time
      from market.vwap('BBB', '2024-01-04', '2024-01-07') v, market.twap('BBB', '2024-01-04', '2024-01-07') t`;
    expect(whole).toEqual({ slots: 3, by_volume: true, by_time: true });
  });
});

describe('another quote', () => {
  const inBitcoin = async (width: string, from: string, to: string) =>
    rows(analyst`
      select to_char(open_time at time zone 'UTC', 'MM-DD HH24') as at, round(close::numeric, 4)::float8 as close, round(rate::numeric, 4)::float8 as rate, source
      from market.in_quote('AAA', 'btc', ${width}::interval, ${from}, ${to})`);

  test('uses its own candles where they are stored, and converts elsewhere, in each width', async () => {
    const bitcoin = await givenSeries(sql, { coinId: 'btc-bitcoin', interval: '24h', span: days });
    await storeAnswer(sql, bitcoin, { span: days, slots: run(100, 14) });
    const hours = await givenSeries(sql, { coinId: 'btc-bitcoin', interval: '1h', span: { from: day(1), to: day(2) } });
    await storeAnswer(sql, hours, { span: { from: day(1), to: day(1) + 4 * HOUR }, slots: run(1000, 4) });
    const [own] = await sql<{ id: number }[]>`
      insert into market.series (coin_id, quote, interval) values ('aaa-coin', 'btc', '24h') returning id`;
    await sql`
      insert into market.candle (open_time, close, series_id, interval) values (${day(3)}, 0.5, ${own!.id}, '24h'), (${day(20)}, 0.7, ${own!.id}, '24h')`;
    const converted = (n: number) => ({
      close: Number(((10 + n - 1) / (100 + n - 1)).toFixed(4)),
      rate: Number(((100 + n - 1) * 1.01).toFixed(4)),
      source: 'btc-bitcoin',
    });
    expect(await inBitcoin('1 day', '2024-01-01', '2024-01-05')).toEqual([
      { at: '01-01 00', ...converted(1) },
      { at: '01-02 00', ...converted(2) },
      { at: '01-03 00', close: 0.5, rate: 1, source: 'candles in btc' },
      { at: '01-04 00', ...converted(4) },
    ]);
    // There is no candle in dollars here.
    expect(await inBitcoin('1 day', '2024-01-15', '2024-01-30')).toEqual([
      { at: '01-20 00', close: 0.7, rate: 1, source: 'candles in btc' },
    ]);
    expect(await inBitcoin('1 hour', '2024-01-01', '2024-01-01 02:00')).toEqual([
      { at: '01-01 00', close: 0.1, rate: 1010, source: 'btc-bitcoin' },
      { at: '01-01 01', close: Number((101 / 1001).toFixed(4)), rate: 1011.01, source: 'btc-bitcoin' },
    ]);
    // A week with one stored day is not the whole week.
    expect(await inBitcoin('1 week', '2024-01-01', '2024-01-08')).toEqual([{ at: '01-01 00', ...converted(7) }]);
  });
});

describe('an infinite instant', () => {
  test('reverses no range: nothing lies before the beginning or after the end', async () => {
    await recordCoins(sql, [coinNamed('none-coin')], FIRST);
    for (const call of [
      "ohlcv('AAA', '1 day', '2024-01-01', '-infinity')",
      "ohlcv('AAA', '1 day', 'infinity', null)",
      "ohlcv('AAA', '1 month', 'infinity')",
      "ohlcv_closed('AAA', '1 week', null, '-infinity')",
      "returns('AAA', '1 month', 'infinity', null)",
      "returns('AAA', '1 day', '2024-01-01', '-infinity')",
      "on_grid('AAA', '1 day', '2024-01-01', '-infinity')",
      "in_quote('AAA', 'BBB', '1 day', 'infinity', null)",
      "event_study('AAA', 'infinity', benchmark => 'BBB')",
      "event_study('AAA', '-infinity', benchmark => 'BBB', width => '1 month')",
      "condition('AAA', '24h', 'infinity')",
      "condition('AAA', '24h', '-infinity')",
      "universe('infinity')",
      "universe('-infinity')",
    ])
      expect(await given(`market.${call}`), call).toEqual([]);
    for (const [name, none] of [
      ['vwap', { vwap: null, volume: null, slots: 0, complete: false }],
      ['twap', { twap: null, slots: 0, complete: false }],
      ['max_drawdown', { drawdown: null, peak_at: null, trough_at: null, slots: 0, complete: false }],
    ] as const) {
      for (const span of ["'2024-01-01', '-infinity'", "'infinity', null", "null, '-infinity'"])
        expect(
          (await given(`market.${name}('AAA', ${span})`)).map((row) => JSON.parse(row)),
          `${name} ${span}`,
        ).toEqual([none]);
    }
    const unknown = [{ price: null, source: null, priced_at: null, age: null }];
    for (const at of ['infinity', '-infinity'])
      expect((await given(`market.price_at('AAA', '${at}', '${endless}')`)).map((row) => JSON.parse(row))).toEqual(
        unknown,
      );
  });

  test('is its own slot, and an infinite age accepts any age', async () => {
    for (const width of ['1 month', '1 week', '1 day', '3 hours']) {
      const [slots] = await analyst`
        select market.slot_of(${width}::interval, 'infinity'::timestamptz)::text as last, market.slot_of(${width}::interval, '-infinity'::text)::text as first`;
      expect(slots, width).toEqual({ last: 'infinity', first: '-infinity' });
    }
    const [old] = await analyst`select price, age::text from market.price_at('AAA', '2030-01-01', ${endless})`;
    expect(old).toEqual({ price: 23 * 1.01, age: '2178 days' });
    await sql`insert into market.rate (currency, at, updated_at, price) values ('EUR', ${day(-300)}, now(), 2)`;
    const euros = await rows(analyst`
      select close from market.in_quote('AAA', 'EUR', '1 day', '2024-01-01', '2024-01-02', ${endless}::interval)`);
    expect(euros).toEqual([{ close: 5.05 }]);
  });
});

const ENDLESS_FILL = [
  "on_grid('AAA', '1 day', '2024-01-01', '2024-01-05', fill => 'previous', max_fill => 'infinity')",
  'max_fill is infinity, and must have an end',
  undefined,
] as const;

describe('an invalid argument', () => {
  const WIDTH = 'Give a multiple of 5 minutes (days and weeks are), or of whole months.';

  test('is a width that mixes units, is not positive, or is infinite', async () => {
    for (const [width, told] of [
      ['1 month 15 days', '1 mon 15 days'],
      ['1 month -40 days', '1 mon -40 days'],
      ['0', '00:00:00'],
      ['-1 day', '-1 days'],
      ['-1 month', '-1 mons'],
      ...(endless === 'infinity' ? [['infinity', 'infinity'] as const] : []),
    ] as const) {
      const refused = [`no whole number of candles makes up a width of ${told}`, WIDTH];
      expect(await refusalOf(`market.slot_of('${width}', '2024-01-20')`), width).toEqual(refused);
      for (const call of [
        `ohlcv('AAA', '${width}', '2024-01-01')`,
        `returns('AAA', '${width}', '2024-01-01', '2024-02-01')`,
        `max_drawdown('AAA', '2024-01-01', '2024-02-01', '${width}')`,
        `correlation('AAA', 'BBB', '2024-01-01', '2024-02-01', '${width}')`,
      ])
        expect(await refusalOf(`market.${call}`), call).toEqual(refused);
    }
    // Also when the width is no constant. A function of slots alone accepts any other width.
    expect(await refusalOf("(values (interval '1 month 1 day')) w(width), market.slot_of(w.width, now()) s")).toEqual([
      'no whole number of candles makes up a width of 1 mon 1 day',
      WIDTH,
    ]);
    const [odd] = await analyst`
      select extract(epoch from market.slot_of('7 minutes', '2024-01-01 00:10'))::int % 420 as beyond, market.slot_of(null, now()) as none`;
    expect(odd).toEqual({ beyond: 0, none: null });
  });

  test('is an error that names it, its value, and what is right', async () => {
    const bars = 'Give minutes, hours, days or weeks. market.ohlcv has candles of months.';
    const quotes = 'Candles are in usd and btc. market.in_quote converts their closes.';
    for (const [call, ...refused] of [
      [
        "prices_sampled('AAA', '1 month', '2024-01-01', '2024-02-01')",
        'no bars of samples have a width of 1 mon',
        bars,
      ],
      ["prices_sampled('AAA', '0', '2024-01-01', '2024-02-01')", 'no bars of samples have a width of 00:00:00', bars],
      ["universe('2024-01-05', -1)", 'n is -1, and a number of coins is not negative', undefined],
      ["price_at('AAA', '2024-01-05', '1 day', 'eur')", 'there are no candles in eur', quotes],
      ["price_at('AAA', '2024-01-05', '1 day', 'USD')", 'there are no candles in USD', quotes],
      ...(endless === 'infinity' ? [ENDLESS_FILL] : []),
    ] as const)
      expect(await refusalOf(`market.${call}`), call).toEqual(refused);
    expect(await given("market.universe('2024-01-05', 0)")).toEqual([]);
  });
});

test('the planner inlines slot_of and slot_end of a column', async () => {
  const plan = await analyst.unsafe(`
    explain (verbose, costs off) select market.slot_of('1 month', open_time), market.slot_end('1 month', open_time) from market.candles`);
  const text = plan.map((row) => row['QUERY PLAN']).join('\n');
  expect(text).toContain('date_trunc');
  expect(text).not.toMatch(/slot_of|slot_end|base_of/);
});

test('docs/sql.md says which column of market.candles is missing in market.candles_all', async () => {
  const columns = async (view: string) =>
    (await analyst`select attname from pg_attribute where attrelid = ${`market.${view}`}::regclass and attnum > 0`).map(
      ({ attname }) => attname as string,
    );
  const all = await columns('candles_all');
  const missing = (await columns('candles')).filter((name) => !all.includes(name));
  expect(missing).toEqual(['series_id']);
  expect(readFileSync('docs/sql.md', 'utf8')).toContain(
    'the columns of `market.candles` without `series_id`, and `source`',
  );
});
