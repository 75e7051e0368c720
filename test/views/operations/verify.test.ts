import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { type SeriesProof, verifySeries } from '../../../src/views/operations/verify.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { candlesAt, seedSeries } from '../../support/warehouse.ts';

const START = Date.UTC(2024, 0, 1);
const NOW = Date.UTC(2024, 6, 1);
const days = (from: number, count: number) => Array.from({ length: count }, (_, i) => START + (from + i) * DAY);
const span = (from: number, to: number) => ({ from: START + from * DAY, to: START + to * DAY });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.sql`truncate market.coin, market.series, market.candle cascade`;
});

async function verify(filter = {}, now = NOW): Promise<SeriesProof[]> {
  const proofs: SeriesProof[] = [];
  for await (const proof of verifySeries(database.sql, filter, now)) proofs.push(proof);
  return proofs;
}

/** Thirty days are wanted and twenty covered, of which one is known to be empty; two provisional candles follow them. */
const sound = (coinId: string) => ({
  coinId,
  interval: '24h' as const,
  wanted: [span(0, 30)],
  covered: [span(0, 20)],
  candles: [...days(0, 10), ...days(11, 9), ...days(20, 2)],
});

describe('verify', () => {
  test('counts final, provisional and empty slots, and finds no difference in a sound series', async () => {
    await seedSeries(database.sql, sound('btc-bitcoin'));
    expect(await verify()).toEqual([
      {
        seriesId: expect.any(Number),
        coinId: 'btc-bitcoin',
        quote: 'usd',
        interval: '24h',
        slotsCovered: 20,
        candles: 19,
        provisional: 2,
        knownEmpty: 1,
        hash: expect.stringMatching(/^[0-9a-f]{16}$/),
        differences: [],
        notes: [],
        stretches: [],
        repairs: [],
        removals: [],
        toRefetch: [],
      },
    ]);
  });

  test.each<[string, (id: number) => Promise<unknown>, RegExp]>([
    [
      'a candle that was deleted',
      (id) => database.sql`delete from market.candle where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^18 candles inside coverage, but the series records 19/,
    ],
    [
      'a candle that was added',
      (id) =>
        database.sql`insert into market.candle (series_id, interval, open_time) values (${id}, '24h', '2024-01-11Z')`,
      /^20 candles inside coverage, but the series records 19/,
    ],
    [
      'coverage that was widened',
      (id) => database.sql`update market.series set covered = '{[2024-01-01Z,2024-01-22Z)}' where id = ${id}`,
      /^20 candles inside coverage, but the series records 19/,
    ],
    ['a partition that was dropped', () => database.sql`truncate market.candle_24h`, /^0 candles inside coverage/],
    [
      'a candle off the grid',
      (id) =>
        database.sql`update market.candle set open_time = open_time + interval '1 hour' where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^2024-01-05 00:00Z to 2024-01-06 00:00Z: 1 candle off the 24h grid/,
    ],
    [
      'high below low',
      (id) =>
        database.sql`update market.candle set high = low / 2, open = null, close = null where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^2024-01-05 00:00Z to 2024-01-06 00:00Z: 1 candle with impossible values/,
    ],
    [
      'close above high',
      (id) =>
        database.sql`update market.candle set close = high * 2 where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^2024-01-05 00:00Z to 2024-01-06 00:00Z: 1 candle with impossible values/,
    ],
    [
      'a negative volume',
      (id) => database.sql`update market.candle set volume = -1 where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^2024-01-05 00:00Z to 2024-01-06 00:00Z: 1 candle with impossible values/,
    ],
    [
      'a price that is no number',
      (id) => database.sql`update market.candle set open = 'NaN' where series_id = ${id} and open_time = '2024-01-05Z'`,
      /^2024-01-05 00:00Z to 2024-01-06 00:00Z: 1 candle with impossible values/,
    ],
    [
      'coverage without an end',
      (id) =>
        database.sql`update market.series set covered = '{[2024-01-01Z,)}', covered_candles = 21 where id = ${id}`,
      /^coverage has an open end/,
    ],
  ])('finds %s', async (_, damage, message) => {
    const id = await seedSeries(database.sql, sound('btc-bitcoin'));
    await seedSeries(database.sql, sound('eth-ethereum'));
    await damage(id);
    const [damaged, other] = await verify();
    expect(damaged!.differences).toContainEqual(expect.stringMatching(message));
    if (!message.source.includes('0 candles inside')) expect(other!.differences).toEqual([]);
  });

  test('finds candles and coverage in the future', async () => {
    await seedSeries(database.sql, sound('btc-bitcoin'));
    expect((await verify({}, START + 10.5 * DAY))[0]!.differences).toEqual(
      expect.arrayContaining([
        '2024-01-12 00:00Z to 2024-01-21 00:00Z: coverage reaches into the future',
        '2024-01-12 00:00Z to 2024-01-23 00:00Z: 11 candles in the future',
      ]),
    );
  });

  test('gives a hash that others can compute, from final candles alone', async () => {
    await seedSeries(database.sql, sound('btc-bitcoin'));
    const [proof] = await verify();
    const all = candlesAt(sound('btc-bitcoin').candles);
    let sum = 0n;
    for (const [i, at] of all.openTime.entries()) {
      if (at >= span(0, 20).to) continue;
      const bytes = Buffer.alloc(56);
      bytes.writeBigInt64BE(BigInt(at / 1000), 0);
      const numbers = [all.open[i], all.high[i], all.low[i], all.close[i], all.volume[i], all.marketCap[i]];
      for (const [n, value] of numbers.entries()) {
        if (value === null || value === undefined) bytes.writeBigUInt64BE(0x7ff8000000000000n, 8 + n * 8);
        else bytes.writeDoubleBE(value, 8 + n * 8);
      }
      sum += createHash('sha256').update(bytes).digest().readBigUInt64BE(0);
    }
    expect(proof!.hash).toBe(BigInt.asUintN(64, sum).toString(16).padStart(16, '0'));
  });

  test('gives a hash that does not depend on the order of writing, and changes with the last bit of one number', async () => {
    await seedSeries(database.sql, sound('btc-bitcoin'));
    const backwards = { ...sound('eth-ethereum'), candles: [] };
    const id = await seedSeries(database.sql, { ...backwards, recorded: 19 });
    await database.sql`insert into market.candle
      select open_time, open, high, low, close, volume, market_cap, ${id}, interval from market.candle order by open_time desc`;
    const [first, second] = await verify();
    expect(second!.hash).toBe(first!.hash);
    await database.sql`update market.candle set close = close + 2e-16 * close where series_id = ${id} and open_time = '2024-01-05Z'`;
    const [, changed] = await verify();
    expect(changed!.hash).not.toBe(first!.hash);
    expect(changed!.differences).not.toEqual([]);
  });

  test('checks the requested series, also more than one statement reads', async () => {
    for (let i = 0; i < 205; i++)
      await seedSeries(database.sql, { ...sound(`c${i}-coin`), candles: i < 2 ? days(0, 20) : [] });
    await seedSeries(database.sql, { ...sound('c0-coin'), interval: '1h', candles: [START, START + HOUR] });
    expect(await verify()).toHaveLength(206);
    const one = await verify({ coinIds: ['c0-coin'] });
    expect(one.map((proof) => [proof.interval, proof.candles])).toEqual([
      ['24h', 20],
      ['1h', 2],
    ]);
    expect(await verify({ coinIds: ['c0-coin'], interval: '1h' })).toHaveLength(1);
    expect(await verify({ quote: 'btc' })).toEqual([]);
  });
});
