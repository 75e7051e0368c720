/** Days with and without candles: `market.condition` and `market.on_grid` say why, in a session in New York. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR, type Interval } from '../../../src/core/interval.ts';
import { DEFAULT_KEEP } from '../../../src/core/settings/retention-settings.ts';
import { recordRefusal } from '../../../src/store/candle/refusal.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { makeCurrentAccount, saveAccount } from '../../../src/store/quota/account.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { analystIn } from '../../support/analyst.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';
import { ANONYMOUS } from '../../support/sample-records.ts';

let database: TestDatabase;
let sql: Sql;
let analyst: Sql;
const FIRST = Date.UTC(2024, 0, 1);
const day = (n: number) => FIRST + (n - 1) * DAY;
const span = (from: number, to: number) => ({ from, to });
const some = (n: number): CandleValues[] => Array.from({ length: n }, (_, i) => [i + 1, i + 2, i + 0.5, 1]);
const TODAY = Math.floor(Date.now() / DAY) * DAY;
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

async function wanted(coinId: string, interval: Interval, from: number, to: number): Promise<number> {
  const [id = 0] = await wantSeries(sql, {
    coinIds: [coinId],
    quote: 'usd',
    interval,
    span: { from, to },
    priority: 0,
  });
  return id;
}

beforeAll(async () => {
  database = await createTestDatabase();
  ({ sql } = database);
  analyst = await analystIn(database);
  await saveAccount(sql, ANONYMOUS);
  await makeCurrentAccount(sql, ANONYMOUS.id);
  // Hours: the 1st whole with a hole, the 2nd until noon, the 3rd to 5th wanted, the 6th refused; and from yesterday on.
  const hours = await givenSeries(sql, { coinId: 'aaa-coin', interval: '1h', span: span(day(1), day(7)) });
  await storeAnswer(sql, hours, {
    span: span(day(1), day(2)),
    slots: some(24).map((one, i) => (i === 5 ? null : one)),
  });
  await storeAnswer(sql, hours, { span: span(day(2), day(2) + 12 * HOUR), slots: some(12) });
  await storeAnswer(sql, hours, { span: span(day(4), day(5)), slots: some(24), isFinal: false });
  await sql`
    insert into ops.second_opinion (series_id, span, claim, requested_at, retry_at)
    values (${hours.id}, ${span(day(5), day(6))}::tstzrange, 'unconfirmed', ${day(7)}, ${day(90)})`;
  const no = {
    plan: 'free',
    seriesId: hours.id,
    reason: 'unknown coin',
    message: 'id not found',
    refusedAt: day(50),
  } as const;
  await recordRefusal(sql, { ...no, span: span(day(6), day(7)) });
  await wanted('aaa-coin', '1h', TODAY - DAY, Number.POSITIVE_INFINITY);
  // Its data begin in 2023. Days of another coin before February 2024 were removed.
  await sql`update market.coin set first_data_at = '2023-06-01Z' where id = 'aaa-coin'`;
  const days = await givenSeries(sql, {
    coinId: 'bbb-coin',
    interval: '24h',
    span: span(Date.UTC(2023, 11, 1), day(3)),
  });
  await storeAnswer(sql, days, { span: span(Date.UTC(2023, 11, 1), day(3)), slots: some(33) });
  const removed = await givenSeries(sql, { coinId: 'ccc-coin', interval: '1h', span: span(day(-1), day(1)) });
  await storeAnswer(sql, removed, { span: span(day(-1), day(1)), slots: some(48) });
  await removeOld(database, {
    keep: { ...DEFAULT_KEEP, candles: { ...DEFAULT_KEEP.candles, '24h': DAY, '1h': 28 * DAY } },
    now: Date.UTC(2024, 1, 1),
  });
  const prices = await wanted('bbb-coin', 'prices-1d', day(1), day(4));
  await sql`update market.series set covered = ${[span(day(1), day(3))]}::tstzmultirange where id = ${prices}`;
  await sql`insert into market.price (time, price, series_id) values (${day(1)}, 7, ${prices})`;
});
afterAll(async () => {
  await analyst?.end();
  await database?.drop();
});

const conditionOf = async (coin: string, interval: string, of: string) => {
  const [row] = await analyst`
    select condition, reason, detail, slots, final_slots as final, rows, to_char(next_ask_at at time zone 'UTC', 'YYYY-MM-DD') as next
    from market.condition(${coin}, ${interval}::market.candle_interval, ${of}::date)`;
  const { condition, reason, ...rest } = row as Record<string, unknown>;
  return [`${condition}: ${reason}`, rest];
};

describe('a day', () => {
  test('is available when each slot is final: with a candle, known to be empty, or made of finer ones', async () => {
    expect(await conditionOf('AAA', '1h', '2024-01-01')).toEqual([
      'available: final',
      { detail: 'slots without a row are known to be empty', slots: 24, final: 24, rows: 23, next: null },
    ]);
    expect(await conditionOf('AAA', '24h', '2024-01-01')).toMatchObject([
      'available: final',
      { detail: 'made of candles of a narrower interval', slots: 1, final: 1 },
    ]);
    expect(await conditionOf('BBB', 'prices-1d', '2024-01-01')).toEqual([
      'available: final',
      { detail: null, slots: 1, final: 1, rows: 1, next: null },
    ]);
    expect(await conditionOf('bbb-coin', 'prices-1d', '2024-01-02')).toMatchObject([
      'available: final',
      { detail: 'slots without a row are known to be empty', rows: 0 },
    ]);
  });

  test('is partial when some slots are final, and says what is known of the rest', async () => {
    expect(await conditionOf('AAA', '1h', '2024-01-02')).toEqual([
      'partial: not asked yet',
      { detail: null, slots: 24, final: 12, rows: 12, next: null },
    ]);
    // Two of the four parts of this day.
    expect(await conditionOf('AAA', '6h', '2024-01-02')).toMatchObject([
      'partial: not asked yet',
      { slots: 4, final: 2 },
    ]);
  });

  test('is pending while it may still arrive', async () => {
    expect(await conditionOf('AAA', '1h', '2024-01-03')).toMatchObject([
      'pending: not asked yet',
      { final: 0, rows: 0 },
    ]);
    expect(await conditionOf('AAA', '1h', '2024-01-04')).toMatchObject([
      'pending: not asked yet',
      { final: 0, rows: 24 },
    ]);
    expect(await conditionOf('AAA', '1h', '2024-01-05')).toMatchObject([
      'pending: unconfirmed',
      { next: '2024-03-30' },
    ]);
    expect(await conditionOf('AAA', '1h', dateOf(TODAY - DAY))).toMatchObject(['pending: not asked yet', { final: 0 }]);
    expect(await conditionOf('AAA', '1h', dateOf(TODAY + 5 * DAY))).toMatchObject(['pending: not yet', { rows: 0 }]);
  });

  test('is missing when it will not arrive on its own', async () => {
    expect(await conditionOf('AAA', '1h', '2024-01-06')).toMatchObject([
      'missing: unknown coin',
      { detail: 'id not found', next: '2024-02-20' },
    ]);
    expect(await conditionOf('AAA', '1h', '2024-02-01')).toMatchObject([
      'missing: not wanted',
      { detail: 'nobody asked for this day' },
    ]);
    expect(await conditionOf('AAA', '1h', '2023-05-31')).toMatchObject([
      'missing: before its data',
      { detail: 'the upstream has data of this coin since 2023-06-01' },
    ]);
    expect(await conditionOf('AAA', '1h', '2023-06-01')).toMatchObject(['missing: not wanted', {}]);
    expect(await conditionOf('BBB', '24h', '2023-12-15')).toMatchObject([
      'missing: retention',
      { detail: 'it was removed because of its age' },
    ]);
    // Days and quarters of a day that were made of hours.
    for (const interval of ['24h', '6h']) {
      expect(await conditionOf('CCC', interval, '2023-12-30')).toMatchObject([
        'missing: retention',
        { detail: 'it was removed because of its age' },
      ]);
      expect(await conditionOf('CCC', interval, '2024-01-20')).toMatchObject([
        'missing: not wanted',
        { detail: 'there is no such series, and nobody asked for all of this day at a finer interval' },
      ]);
    }
    expect(await conditionOf('BBB', '5m', '2024-01-01')).toMatchObject([
      'missing: not wanted',
      { detail: 'there is no such series, and none that is finer', slots: 288 },
    ]);
    await expect(conditionOf('nobody', '1h', '2024-01-01')).rejects.toThrow('no coin is called nobody');
  });
});

describe('a calendar', () => {
  const grid = async (width: string, from: string, to: string, fill = 'none', most: string | null = null) =>
    analyst<{ at: string; close: number | null; reason: string | null; from: string | null; volume: number | null }[]>`
      select to_char(open_time at time zone 'UTC', 'MM-DD HH24:MI') as at, close, volume, reason,
        to_char(filled_from at time zone 'UTC', 'MM-DD HH24:MI') as "from"
      from market.on_grid('AAA', ${width}::interval, ${from}, ${to}, fill => ${fill}, max_fill => ${most}::interval)`;

  test('has each slot once, with its candle or the reason why there is none', async () => {
    const found = await grid('1 day', '2023-05-30', '2024-01-08');
    expect(found).toHaveLength(223);
    expect(found.slice(0, 3).map(({ at, reason }) => `${at} ${reason}`)).toEqual([
      '05-30 00:00 before its data',
      '05-31 00:00 before its data',
      '06-01 00:00 not wanted',
    ]);
    expect(found.slice(-8).map(({ at, close, reason }) => [at, close, reason])).toEqual([
      ['12-31 00:00', null, 'not wanted'],
      ['01-01 00:00', 24 * 1.01, null],
      ['01-02 00:00', null, 'not asked yet'],
      ['01-03 00:00', null, 'not asked yet'],
      ['01-04 00:00', null, 'not asked yet'],
      ['01-05 00:00', null, 'unconfirmed'],
      ['01-06 00:00', null, 'unknown coin'],
      ['01-07 00:00', null, 'not wanted'],
    ]);
    const [, , ...coming] = await grid('1 hour', dateOf(TODAY + DAY), dateOf(TODAY + 2 * DAY));
    expect(new Set(coming.map(({ reason }) => reason))).toEqual(new Set(['not yet']));
  });

  test('fills holes with the last close on request, and only as far as allowed', async () => {
    const hole = { at: '01-01 05:00', volume: null };
    expect((await grid('1 hour', '2024-01-01 05:00', '2024-01-01 06:00'))[0]).toEqual({
      ...hole,
      close: null,
      reason: 'empty',
      from: null,
    });
    expect((await grid('1 hour', '2024-01-01 05:00', '2024-01-01 06:00', 'previous'))[0]).toEqual({
      ...hole,
      close: 5 * 1.01,
      reason: 'empty',
      from: '01-01 04:00',
    });
    const filled = async (most: string | null) =>
      (await grid('1 hour', '2024-01-02 10:00', '2024-01-02 18:00', 'previous', most)).map(({ close, from }) => [
        close,
        from,
      ]);
    const last = [12 * 1.01, null];
    const carried = [12 * 1.01, '01-02 11:00'];
    const none = [null, null];
    expect(await filled(null)).toEqual([[11 * 1.01, null], last, carried, carried, carried, none, none, none]);
    expect(await filled('1 hour')).toEqual([[11 * 1.01, null], last, carried, none, none, none, none, none]);
    await expect(grid('1 hour', '2024-01-01', '2024-01-02', 'next')).rejects.toThrow('next is no way to fill');
    await expect(analyst`select from market.on_grid('AAA', '1 day', null, null)`).rejects.toThrow(
      'on_grid needs from_time',
    );
    await expect(grid('0', '2024-01-01', '2024-01-02')).rejects.toThrow('no whole number of candles makes up');
  });

  test('a wider slot that is incomplete has its candle, and the reason', async () => {
    const [row] = await analyst`
      select close, slots, complete, reason from market.on_grid('AAA', '2 days', '2024-01-02', '2024-01-04')`;
    expect(row).toEqual({ close: null, slots: 0, complete: false, reason: 'not asked yet' });
    const [part] = await analyst`
      select slots, complete, reason from market.on_grid('AAA', '12 hours', '2024-01-04', '2024-01-04 12:00')`;
    expect(part).toEqual({ slots: 0, complete: false, reason: 'not asked yet' });
  });

  test('says what retention removed', async () => {
    const reasons = async (width: string) =>
      (await analyst`select reason from market.on_grid('CCC', ${width}::interval, '2023-12-29', '2024-01-02')`).map(
        ({ reason }) => reason as string,
      );
    const none = 'not wanted';
    expect(await reasons('1 day')).toEqual([none, 'retention', 'retention', none]);
    expect(await reasons('2 days')).toEqual(['retention', 'retention']);
    expect((await reasons('1 hour')).filter((reason) => reason === 'retention')).toHaveLength(48);
  });

  test('has days of 24 hours, also where the clocks of the session change', async () => {
    // The 10th of March 2024 in New York.
    const found = await grid('1 day', '2024-03-08', '2024-03-13');
    expect(found.map(({ at }) => at)).toEqual([
      '03-08 00:00',
      '03-09 00:00',
      '03-10 00:00',
      '03-11 00:00',
      '03-12 00:00',
    ]);
    expect(await grid('1 hour', '2024-03-10', '2024-03-11')).toHaveLength(24);
    expect((await grid('1 month', '2024-01-15', '2024-06-01')).map(({ at }) => at)).toEqual([
      '02-01 00:00',
      '03-01 00:00',
      '04-01 00:00',
      '05-01 00:00',
    ]);
  });
});
