/** Coins get new ids while answers about them are stored, and several at once: no answer is lost, and nothing is blocked. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { verifyWarehouse } from '../../../src/views/verify/warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed, day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { until } from '../../support/until.ts';

let database: TestDatabase;
let other: Sql;
beforeEach(async () => {
  database = await createTestDatabase();
  other = createClient({ url: database.url, max: 1 });
});
afterEach(async () => {
  await other.end({ timeout: 5 });
  await database.drop();
});

/** How many sessions wait for another session. */
const waiting = async () =>
  (await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    .length;

test.each([
  ['final', [0, 20] as const, 900],
  ['not final yet', [899, 901] as const, 900],
  ['missing', [0, 20] as const, 900],
])('the first answer about the new id is stored during the rename when its candles are %s', async (kind, span, at) => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(1_100) });
  const old = await newDailySeries(sql, 'a-a');
  await storeAnswer(sql, old, [0, 100], 500);
  const renewed = await newDailySeries(sql, 'b-b');
  await recordRenames(sql, [{ oldId: 'a-a', newId: 'b-b', at: day(1_000) + DAY }], 'changelog');
  const without = kind === 'missing' ? Array.from({ length: 20 }, (_, i) => i) : [];
  let storing: Promise<unknown> | undefined;
  let applying: Promise<unknown> | undefined;
  await other.begin(async (tx) => {
    await tx`lock table ops.fetch in share mode`;
    storing = storeAnswer(sql, renewed, span, at, { without });
    await until(async () => (await waiting()) === 1);
    applying = applyTracks(sql, day(1_001) + DAY);
    applying.catch(() => undefined);
    await until(async () => (await waiting()) === 2);
  });
  await storing;
  await applying;
  const proofs = [];
  for await (const proof of verifySeries(sql, {}, day(1_002))) proofs.push(proof);
  expect(proofs.flatMap(({ differences }) => differences)).toEqual([]);
  expect(await verifyWarehouse(sql)).toEqual([]);
  const rows = await sql`select series_id, count(*) from market.candle group by 1 order by 1`;
  expect(rows.map(({ count }) => count)).toEqual(kind === 'missing' ? [100] : [100, kind === 'final' ? 20 : 2]);
});

test('of two old ids of one coin with a series each, the newer one moves to the new id, and the other keeps its series', async () => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(1_100) });
  const [oldest, older] = [await newDailySeries(sql, 'a-a'), await newDailySeries(sql, 'b-b')];
  for (const id of [oldest, older]) await storeAnswer(sql, id, [0, 100], 500);
  const rule = {
    tier: 'list',
    interval: '24h',
    quote: 'usd',
    since: FIRST_DAY,
    priority: 0,
    targetAgeMs: DAY,
  } as const;
  await addTracks(
    sql,
    ['a-a', 'b-b'].map((coinId) => ({ ...rule, coinId })),
    day(1_000),
  );
  await recordRenames(sql, [{ oldId: 'a-a', newId: 'b-b', at: day(1_001) }], 'changelog');
  await recordRenames(sql, [{ oldId: 'b-b', newId: 'c-c', at: day(1_002) }], 'changelog');
  await recordCoins(sql, [coinNamed('c-c')], day(1_003));
  for (const at of [1_004, 1_005]) await applyTracks(sql, day(at));
  const series = await sql`select id, coin_id from market.series order by id`;
  expect(series).toEqual([
    { id: oldest, coinId: 'a-a' },
    { id: older, coinId: 'c-c' },
  ]);
  expect(await sql`select coin_id from ops.track`).toEqual([{ coinId: 'c-c' }]);
});
