/** The upstream renamed coins twice, and each has a history under both former ids. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenSeries, storeAnswer } from '../../support/given-candles.ts';
import * as stored from '../../support/stored-answers.ts';

const FROM = Date.UTC(2024, 0, 1);
const RENAMED = Date.UTC(2024, 1, 1);
const SPAN = { from: FROM, to: FROM + 3 * DAY };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

test('the series of the last former id moves to the new id together with its rule; the older series stays', async () => {
  const { sql } = database;
  const ids = new Map<string, number>();
  for (const coinId of ['first-coin', 'second-coin']) {
    const series = await givenSeries(sql, { coinId, interval: '24h', span: SPAN });
    await storeAnswer(sql, series, { span: SPAN, slots: [1, 2, 3].map((n) => [n, n + 1, n - 1, n] as const) });
    await sql`
      insert into ops.track (tier, coin_id, interval, quote, since, priority, target_age, created_at)
      values ('list', ${coinId}, '24h', 'usd', ${FROM}, 1, '1 day', ${FROM})`;
    ids.set(coinId, series.id);
  }
  await givenSeries(sql, { coinId: 'third-coin', interval: '24h', span: SPAN });
  const renames = [
    { oldId: 'first-coin', newId: 'second-coin', at: RENAMED },
    { oldId: 'second-coin', newId: 'third-coin', at: RENAMED + DAY },
  ];
  await recordRenames(sql, renames, 'changelog');
  expect(await applyTracks(sql, RENAMED + 2 * DAY)).toMatchObject({ moved: 1, series: 1 });
  const series = await sql`select coin_id, id from market.series order by coin_id`;
  expect(series.map(({ coinId, id }) => [coinId, id])).toEqual([
    ['first-coin', ids.get('first-coin')],
    ['third-coin', ids.get('second-coin')],
  ]);
  const rules = await sql`select coin_id from ops.track`;
  expect(rules.map(({ coinId }) => coinId)).toEqual(['third-coin']);
  // A second run changes nothing.
  expect(await applyTracks(sql, RENAMED + 3 * DAY)).toMatchObject({ moved: 0, series: 1 });
});

test('empty answers about the old id are not the first opinion about the new id', async () => {
  const { sql } = database;
  const { day } = stored;
  const all = Array.from({ length: 100 }, (_, slot) => slot);
  const covered = () => sql`select coin_id, covered from market.series where id = ${id}`;
  const id = await stored.newDailySeries(sql, 'old-id');
  // The last list that contains the old id is of day 1000.
  await stored.storeAnswer(sql, id, [0, 100], 1_001, { without: all });
  await stored.storeAnswer(sql, id, [0, 100], 1_002, { without: all });
  await recordRenames(sql, [{ oldId: 'old-id', newId: 'new-id', at: day(1_001) }], 'changelog');
  await recordCoins(sql, [stored.coinNamed('new-id')], day(1_003));
  expect(await applyTracks(sql, day(1_003))).toMatchObject({ moved: 1 });
  await stored.storeAnswer(sql, id, [0, 100], 1_004, { without: all });
  expect(await covered()).toMatchObject([{ coinId: 'new-id', covered: [] }]);
  // A second empty answer about the new id confirms them.
  await recordCoins(sql, [stored.coinNamed('new-id')], day(1_005));
  await stored.storeAnswer(sql, id, [0, 100], 1_006, { without: all });
  expect(await covered()).toMatchObject([{ covered: [{ from: day(0), to: day(100) }] }]);
});
