/** Retention runs while answers about the removed time arrive, or while other transactions block it. After each test, verify finds no difference. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { DEFAULT_KEEP, type Keep } from '../../../src/core/settings/retention-settings.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { type Removed, removeOld } from '../../../src/store/upkeep/retention.ts';
import { type SeriesProof, verifySeries } from '../../../src/views/operations/verify.ts';
import { type FilledDatabase, fillDatabase, type TestDatabase } from '../../support/database.ts';
import { day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { until } from '../../support/until.ts';

const NOW = day(1_000);
const KEEP: Keep = {
  ...DEFAULT_KEEP,
  tickers: null,
  fetches: null,
  candles: { ...DEFAULT_KEEP.candles, '24h': 500 * DAY },
};
/** The days of 2024, which are older than the retention. */
const OLD = [0, 366] as const;
const OLD_PARTITION = 'candle_24h_2024';

let filled: FilledDatabase;
let database: TestDatabase;
/** Retention handles this series before the other one. */
let first: number;
let id: number;
let other: Sql;
beforeAll(async () => {
  filled = await fillDatabase(async ({ sql }) => {
    await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(800) });
    first = await newDailySeries(sql, 'b-b');
    id = await newDailySeries(sql, 'a-a');
    for (const series of [first, id]) {
      await storeAnswer(sql, series, [366, 700], 900);
      await storeAnswer(sql, series, OLD, 901);
    }
  });
});
afterAll(() => filled?.drop());
beforeEach(async () => {
  database = await filled.copy();
  other = createClient({ url: database.url, max: 1 });
});
afterEach(async () => {
  await other.end({ timeout: 5 });
  await database.drop();
});

const retain = (waitMs = 60_000): Promise<Removed> => removeOld(database, { keep: KEEP, now: NOW, waitMs });

/** Runs retention while another transaction uses the table, so that the old partition stays. */
async function retainInVain(): Promise<void> {
  await other.begin(async (tx) => {
    await tx`lock table market.candle_24h in share update exclusive mode`;
    expect(await retain(50)).toMatchObject({ partitions: [], inUse: [OLD_PARTITION] });
  });
}

async function proof(): Promise<SeriesProof> {
  const proofs = new Map<number, SeriesProof>();
  for await (const one of verifySeries(database.sql, {}, NOW)) proofs.set(one.seriesId, one);
  expect(proofs.get(first)).toMatchObject({ differences: [] });
  return proofs.get(id)!;
}

const wantAgain = () =>
  wantSeries(database.sql, {
    coinIds: ['a-a'],
    quote: 'usd',
    interval: '24h',
    span: { from: day(OLD[0]), to: day(OLD[1]) },
    priority: 0,
  });

const waitsForLock = async () =>
  (
    await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like 'alter table%'`
  ).length > 0;

test('an answer that is stored after retention has forgotten its slots is not lost with the partition', async () => {
  let removing: Promise<Removed> | undefined;
  await other.begin(async (tx) => {
    await tx`lock table market.candle_24h in share update exclusive mode`;
    removing = retain();
    await until(waitsForLock);
    // Its request was sent before.
    await storeAnswer(database.sql, id, [10, 366], 1_000);
  });
  await removing;
  expect(await proof()).toMatchObject({ differences: [] });
  await retain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});

test('an answer may arrive about slots whose candles retention has yet to remove', async () => {
  await retainInVain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
  await storeAnswer(database.sql, id, [10, 200], 1_000, { without: [20] });
  expect(await proof()).toMatchObject({ differences: [], candles: 334 + 189 });
  await retain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});

test('slots may be wanted again before retention could remove their candles', async () => {
  await retainInVain();
  await wantAgain();
  await retainInVain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
  await wantAgain();
  await retain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});

test('a slot may be mended after it was answered again', async () => {
  await retain();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(366) });
  await storeAnswer(database.sql, id, OLD, 1_000);
  await database.sql`select ops.uncover(${id}, ${day(30)}::timestamptz, ${day(31)}::timestamptz)`;
  expect(await proof()).toMatchObject({ differences: [], candles: 699 });
  await storeAnswer(database.sql, id, [25, 35], 1_001);
  expect(await proof()).toMatchObject({ differences: [], candles: 700 });
});

test('a slot may be mended after retention could not remove its candle', async () => {
  await retainInVain();
  await storeAnswer(database.sql, id, [10, 20], 1_000);
  await database.sql`select ops.uncover(${id}, ${day(15)}::timestamptz, ${day(16)}::timestamptz)`;
  expect(await proof()).toMatchObject({ differences: [] });
  await storeAnswer(database.sql, id, [12, 18], 1_001);
  expect(await proof()).toMatchObject({ differences: [], candles: 344 });
  await retain();
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});

test('a whole series may be mended while old candles are left', async () => {
  await retainInVain();
  await database.sql`select ops.uncover(${id})`;
  expect(await proof()).toMatchObject({ differences: [] });
  await storeAnswer(database.sql, id, [366, 700], 1_001);
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});

test('a detached partition that another process attaches again is kept, and the next run removes it', async () => {
  await retainInVain();
  // The state that a killed retention leaves.
  await database.sql.unsafe(`alter table market.candle_24h detach partition market.${OLD_PARTITION}`);
  await wantAgain();
  let removing: Promise<Removed> | undefined;
  // The next run waits where it forgets slots: meanwhile another process attaches the partition and stores an answer.
  await other.begin(async (tx) => {
    await tx`select from market.series where id = ${id} for update`;
    removing = retain();
    await until(
      async () =>
        (
          await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
            and query like '%from market.series%'`
        ).length > 0,
    );
    await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(366) });
    await storeAnswer(database.sql, first, [10, 366], 1_000);
  });
  expect(await removing).toMatchObject({ partitions: [], inUse: [OLD_PARTITION] });
  expect(await proof()).toMatchObject({ differences: [] });
  expect(await retain()).toMatchObject({ partitions: [OLD_PARTITION], inUse: [] });
  expect(await proof()).toMatchObject({ differences: [], candles: 334 });
});
