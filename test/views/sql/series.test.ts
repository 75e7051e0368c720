/** The newest candle of each series, the number of a series, and the closes that a calendar carries into holes. In a session in New York. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY, INTERVAL_MS, INTERVALS } from '../../../src/core/interval.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const rows = async (found: Promise<readonly object[]>) => (await found).map((row) => ({ ...row }));
const idOf: Record<string, number> = {};

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  // Each interval has as many candles as its place in the list, and the last one is not final.
  for (const [i, interval] of INTERVALS.entries()) {
    const series = await givenSeries(sql, { coinId: 'aaa-coin', interval, span: { from: day(1), to: day(9) } });
    const end = (n: number) => day(1) + n * INTERVAL_MS[interval];
    const slots = Array.from({ length: i + 1 }, (_, n): CandleValues => [n + 1, n + 2, n, 1]);
    await storeAnswer(sql, series, { span: { from: day(1), to: end(i + 1) }, slots });
    await storeAnswer(sql, series, {
      span: { from: end(i + 1), to: end(i + 2) },
      slots: [[100 + i, 300, 1, 1]],
      isFinal: false,
    });
  }
  for (const coinId of ['old-coin', 'new-coin', 'taken-coin', 'other-coin']) {
    const { id } = await givenSeries(sql, { coinId, interval: '24h', span: { from: day(1), to: day(2) } });
    idOf[coinId] = id;
  }
  idOf['old-coin 1h'] = (
    await givenSeries(sql, { coinId: 'old-coin', interval: '1h', span: { from: day(1), to: day(2) } })
  ).id;
  await sql`update market.coin set is_active = false where id = 'old-coin'`;
  await recordRenames(sql, [{ oldId: 'old-coin', newId: 'new-coin', at: day(2) }], 'changelog');
  // This id was given to another coin later, and belongs to that one.
  await recordRenames(sql, [{ oldId: 'taken-coin', newId: 'other-coin', at: day(-9) }], 'changelog');
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

test('market.latest has the newest candle of each interval, whatever the filter of the statement', async () => {
  const all = INTERVALS.map((interval, i) => ({ interval, close: (100 + i) * 1.01, is_final: false }));
  const latest = (where: string, parameters: string[] = []) =>
    rows(
      analyst.unsafe(
        `select interval, close, is_final from market.latest where coin_id = 'aaa-coin' and ${where} order by interval`,
        parameters,
      ),
    );
  expect(await latest('true')).toEqual(all);
  expect(await latest(`symbol = 'AAA' and quote = 'usd'`)).toEqual(all);
  expect(await latest(`quote = 'btc'`)).toEqual([]);
  expect(await latest(`interval in ('5m', '24h')`)).toEqual([all[0], all.at(-1)]);
  for (const one of all) {
    expect(await latest(`interval = '${one.interval}'`)).toEqual([one]);
    expect(await latest('interval = $1::text::market.candle_interval', [one.interval])).toEqual([one]);
  }
});

test('market.candles reads coins only for a statement that needs their symbols', async () => {
  const planOf = async (columns: string, where = 'true') =>
    JSON.stringify(
      await analyst.unsafe(
        `explain select ${columns} from market.candles where series_id = ${idOf['new-coin']} and interval = '24h' and ${where}`,
      ),
    );
  expect(await planOf('open_time, close')).not.toContain(' coin');
  expect(await planOf('symbol')).toContain(' coin');
  expect(await rows(analyst`select distinct symbol from market.candles where symbol = 'AAA'`)).toEqual([
    { symbol: 'AAA' },
  ]);
});

test('market.series_of an old id returns the series of the coin that has a new id now', async () => {
  const seriesOf = async (coin: string, interval = '24h') =>
    (await analyst<{ id: number }[]>`select market.series_of(${coin}, ${interval}) as id`)[0]!.id;
  expect(await seriesOf('new-coin')).toBe(idOf['new-coin']);
  expect(await seriesOf('NEW')).toBe(idOf['new-coin']);
  expect(await seriesOf(' new-coin ')).toBe(idOf['new-coin']);
  expect(await seriesOf('taken-coin')).toBe(idOf['taken-coin']);
  expect(await seriesOf('old-coin')).toBe(idOf['new-coin']);
  // What is still stored under the old id does not belong to the coin with the new id.
  await expect(seriesOf('old-coin', '1h')).rejects.toThrow('there are no candles or prices of 1h of new-coin in usd');
});

test('a calendar carries the last known close over candles without one, and from before its start', async () => {
  const span = { from: day(1), to: day(9) };
  const series = await givenSeries(sql, { coinId: 'ccc-coin', interval: '24h', span });
  const slot = (n: number): CandleValues => [n, n + 1, n - 1, 1];
  await storeAnswer(sql, series, { span, slots: [slot(1), slot(2), null, slot(4), null, null, slot(7), null] });
  await sql`update market.candle set close = null where series_id = ${series.id} and open_time = to_timestamp(${day(4) / 1000})`;
  const grid = (from: string, fill: string, most: string | null = null) =>
    analyst<{ at: string; close: number | null; from: string | null; reason: string | null }[]>`
      select to_char(open_time at time zone 'UTC', 'DD') as at, close, to_char(filled_from at time zone 'UTC', 'DD') as "from", reason
      from market.on_grid('ccc-coin', '1 day', ${from}, '2024-01-10', fill => ${fill}, max_fill => ${most}::interval)`.then(
      (found) => found.map(({ at, close, from: of, reason }) => [at, close && close / 1.01, of, reason]),
    );
  expect(await grid('2024-01-03', 'none')).toEqual([
    ['03', null, null, 'empty'],
    ['04', null, null, null],
    ['05', null, null, 'empty'],
    ['06', null, null, 'empty'],
    ['07', 7, null, null],
    ['08', null, null, 'empty'],
    ['09', null, null, 'not wanted'],
  ]);
  const before = ['03', 2, '02', 'empty'];
  const after = [
    ['07', 7, null, null],
    ['08', 7, '07', 'empty'],
    ['09', 7, '07', 'not wanted'],
  ];
  // The candle of the fourth is not changed. Three slots after the second end on the fifth.
  expect(await grid('2024-01-03', 'previous')).toEqual([
    before,
    ['04', null, null, null],
    ['05', 2, '02', 'empty'],
    ['06', null, null, 'empty'],
    ...after,
  ]);
  expect(await grid('2024-01-06', 'previous', '4 days')).toEqual([['06', 2, '02', 'empty'], ...after]);
  expect(await grid('2024-01-06', 'previous', '0')).toEqual([
    ['06', null, null, 'empty'],
    ['07', 7, null, null],
    ['08', null, null, 'empty'],
    ['09', null, null, 'not wanted'],
  ]);
});
