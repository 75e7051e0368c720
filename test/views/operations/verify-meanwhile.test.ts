/** `verify` while others write: it names no difference if nothing was tampered with. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { DEFAULT_KEEP } from '../../../src/core/settings/retention-settings.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { continueHistories, recordRenames } from '../../../src/store/upkeep/rename.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { attest } from '../../../src/views/attestation/attestation.ts';
import { compare } from '../../../src/views/attestation/compare.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed, day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { until } from '../../support/until.ts';

const NOW = day(1_000);

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

test('verify finds no difference when retention runs between its instant and its read of the candles', async () => {
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(800) });
  const id = await newDailySeries(database.sql, 'a-a');
  await storeAnswer(database.sql, id, [366, 700], 900);
  await storeAnswer(database.sql, id, [0, 366], 901);
  // A lock in the query of the evidence, which verify reads before the candles.
  await database.sql.unsafe(`
    create or replace function ops.first_link(coin_id text, quote text, i market.candle_interval) returns bytea language plpgsql stable as $$
    begin
      perform pg_advisory_xact_lock_shared(1);
      return sha256(convert_to(coin_id || ' ' || quote || ' ' || i, 'UTF8'));
    end $$`);
  await other`select pg_advisory_lock(1)`;
  const verifying = (async () => {
    for await (const proof of verifySeries(database.sql, {}, NOW)) return proof;
    throw new Error('there is no series');
  })();
  const waits = async () =>
    (
      await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and wait_event = 'advisory'`
    ).length > 0;
  await until(waits);
  const keep = {
    ...DEFAULT_KEEP,
    tickers: null,
    fetches: null,
    candles: { ...DEFAULT_KEEP.candles, '24h': 500 * DAY },
  };
  await removeOld(database, { keep, now: NOW, waitMs: 1_000 });
  await other`select pg_advisory_unlock(1)`;
  expect(await verifying).toMatchObject({ differences: [] });
});

test('verify --against finds no tampering when a coin gets a new id while it compares', async () => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(200) });
  const id = await newDailySeries(sql, 'a-a');
  await storeAnswer(sql, id, [0, 100], 500);
  const lines: string[] = [];
  for await (const line of attest(sql, { at: NOW, key: null })) lines.push(line.trimEnd());
  async function* facts() {
    for (const line of lines.slice(1, -1)) {
      if (line.startsWith('[')) {
        await recordCoins(sql, [coinNamed('b-b')], day(1_001));
        await recordRenames(sql, [{ oldId: 'a-a', newId: 'b-b', at: day(1_002) }], 'changelog');
        expect(await continueHistories(sql, day(1_002))).toBe(1);
      }
      yield line;
    }
  }
  const found = [];
  for await (const one of compare(sql, facts(), { keep: DEFAULT_KEEP, at: NOW, now: day(1_003) })) found.push(one);
  expect(found.filter(({ verdict }) => verdict === 'tampered')).toEqual([]);
  expect(found.filter(({ verdict }) => verdict === 'renamed')).toHaveLength(1);
});

test.each([
  ['two changes at once', [['a-a', 'b-b', 'c-c']]],
  [
    'two changes at once, and back',
    [
      ['a-a', 'b-b', 'c-c'],
      ['c-c', 'a-a'],
    ],
  ],
])('verify --against recognises %s of the id of a coin', async (_, moves) => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(200) });
  const id = await newDailySeries(sql, 'a-a');
  await storeAnswer(sql, id, [0, 100], 500);
  const lines: string[] = [];
  for await (const line of attest(sql, { at: NOW, key: null })) lines.push(line.trimEnd());
  let at = 1_001;
  for (const ids of moves) {
    for (const [i, newId] of ids.slice(1).entries()) {
      await recordRenames(sql, [{ oldId: ids[i]!, newId, at: day(++at) }], 'changelog');
      await recordCoins(sql, [coinNamed(newId)], day(at));
    }
    expect(await continueHistories(sql, day(at))).toBe(1);
  }
  async function* facts() {
    yield* lines.slice(1, -1);
  }
  const found = [];
  for await (const one of compare(sql, facts(), { keep: DEFAULT_KEEP, at: NOW, now: day(1_100) })) found.push(one);
  expect(found.filter(({ verdict }) => verdict === 'tampered')).toEqual([]);
  expect(found.filter(({ verdict }) => verdict === 'renamed')).toHaveLength(1);
});

test('verify --against finds the right series when two coins had the same id, one after the other', async () => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(200) });
  const attested = async () => {
    const lines: string[] = [];
    for await (const line of attest(sql, { at: NOW, key: null })) lines.push(line.trimEnd());
    return lines.slice(1, -1);
  };
  const compared = async (lines: readonly string[]) => {
    async function* facts() {
      yield* lines;
    }
    const found: string[] = [];
    for await (const { subject, verdict } of compare(sql, facts(), { keep: DEFAULT_KEEP, at: NOW, now: day(1_100) }))
      if (verdict === 'tampered' || verdict === 'renamed') found.push(`${verdict}: ${subject}`);
    return found;
  };
  const move = async (newId: string, at: number) => {
    await recordCoins(sql, [coinNamed(newId)], day(at));
    await recordRenames(sql, [{ oldId: 'a-a', newId, at: day(at) }], 'changelog');
    expect(await continueHistories(sql, day(at))).toBe(1);
  };
  const first = await newDailySeries(sql, 'a-a');
  await storeAnswer(sql, first, [0, 100], 500);
  const ofFirst = await attested();
  await storeAnswer(sql, first, [100, 150], 501);
  await move('b-b', 1_001);
  // The upstream gives the id to another coin, whose evidence is shorter than that of the first one.
  await recordCoins(sql, [coinNamed('a-a')], day(1_002));
  const second = await newDailySeries(sql, 'a-a');
  expect(second).not.toBe(first);
  await storeAnswer(sql, second, [0, 60], 1_003);
  const ofBoth = await attested();
  expect(await compared(ofFirst)).toEqual(['renamed: a-a usd 24h']);
  expect(await compared(ofBoth)).toEqual([]);
  await storeAnswer(sql, second, [60, 80], 1_004);
  await move('c-c', 1_005);
  expect(await compared(ofBoth)).toEqual(['renamed: a-a usd 24h']);
});
