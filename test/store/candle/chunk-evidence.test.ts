/** What an answer leaves in the database besides its candles: digest, evidence, revisions. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import type { Span } from '../../../src/core/span.ts';
import { reopenToldOnce } from '../../../src/store/candle/contradicted.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { recordRenames } from '../../../src/store/upkeep/rename.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  type AnswerOptions,
  coinNamed,
  day,
  FIRST_DAY,
  newDailySeries,
  storeAnswer,
} from '../../support/stored-answers.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(800) });
});
afterAll(() => database.drop());

const newSeries = (coinId: string) => newDailySeries(database.sql, coinId);
const answer = (id: number, days: readonly [number, number], at: number, options?: AnswerOptions) =>
  storeAnswer(database.sql, id, days, at, options);

const stepsOf = (id: number) =>
  database.sql<{ number: number; kind: string; slots: Span[]; knownAt: number; detail: string | null }[]>`
    select number, kind, slots, known_at, detail from market.evidence_steps where series_id = ${id} order by number`;

/** The counts and the digest that the series stores about its candles, beside those computed from the candles. */
async function sumsOf(id: number) {
  const [row] = await database.sql<{ stored: string[]; found: string[] }[]>`
    select array[s.candles::text, s.digest::text, s.covered_candles::text] as stored,
      array[t.candles::text, t.digest::text, t.final_candles::text] as found
    from market.series s cross join lateral ops.sums(s.id, s.interval, '(,)', s.covered, '{}') t where s.id = ${id}`;
  return row!;
}

/** Computes the chain of steps anew, each with the digest of what is stored in its slots. Holds for steps that no later step replaces. */
async function chainOf(id: number) {
  const [row] = await database.sql<{ stored: string; link: string }[]>`
    with recursive step as (
      select e.*, t.told_candles, t.told_digest from market.evidence_steps e
      join market.series s on s.id = e.series_id
      cross join lateral ops.sums(s.id, s.interval, '(,)', '{}', e.slots) t where e.series_id = ${id}
    ), chain as (
      select 0 as number, ops.first_link(coin_id, quote, interval) as link from market.series where id = ${id}
      union all
      select c.number + 1, ops.evidence_link(c.link, s.kind, s.detail, s.known_at, s.slots, s.told_candles, s.told_digest)
      from chain c join step s on s.number = c.number + 1
    )
    select encode(s.link, 'hex') as stored, (select encode(link, 'hex') from chain order by number desc limit 1) as link
    from market.series s where s.id = ${id}`;
  return row!;
}

test('each answer adds one step with its slots, the time it was stored and the digest of the candles', async () => {
  const id = await newSeries('a-coin');
  await answer(id, [0, 300], 400);
  await answer(id, [300, 398], 401);
  const sums = await sumsOf(id);
  expect(sums.found).toEqual(sums.stored);
  expect(sums.stored[0]).toBe('398');
  expect(await stepsOf(id)).toMatchObject([
    { number: 1, kind: 'answer', slots: [{ from: day(0), to: day(300) }], knownAt: day(400) },
    { number: 2, kind: 'answer', slots: [{ from: day(300), to: day(398) }], knownAt: day(401) },
  ]);
  const { stored, link } = await chainOf(id);
  expect(link).toBe(stored);
  const [row] =
    await database.sql`select body_sha256, fetch_id from market.evidence where series_id = ${id} and number = 1`;
  expect(Buffer.from(row!.bodySha256 as Uint8Array).toString('hex')).toBe('07'.repeat(32));
  expect(row!.fetchId).toEqual(expect.any(Number));
});

test('small steps that follow each other are stored in one row, and are still read as separate steps', async () => {
  const id = await newSeries('b-coin');
  await answer(id, [0, 100], 102);
  // One day per answer, then three days in one.
  for (let n = 100; n < 104; n++) await answer(id, [n, n + 1], n + 2);
  await answer(id, [104, 107], 109);
  for (let n = 107; n < 390; n++) await answer(id, [n, n + 1], n + 2);
  const rows =
    await database.sql`select number, cardinality(step_seconds) as steps from market.evidence where series_id = ${id} order by number`;
  expect(rows.map((row) => ({ ...row }))).toEqual([
    { number: 1, steps: null },
    { number: 2, steps: 256 },
    { number: 258, steps: 32 },
  ]);
  const steps = await stepsOf(id);
  expect(steps.map((step) => step.number)).toEqual(Array.from({ length: 289 }, (_, i) => i + 1));
  expect(steps[4]).toMatchObject({ slots: [{ from: day(103), to: day(104) }], knownAt: day(105) });
  expect(steps[5]).toMatchObject({ slots: [{ from: day(104), to: day(107) }], knownAt: day(109) });
  expect(steps.at(-1)).toMatchObject({ slots: [{ from: day(389), to: day(390) }], knownAt: day(391) });
  const { stored, link } = await chainOf(id);
  expect(link).toBe(stored);
  const sums = await sumsOf(id);
  expect(sums.found).toEqual(sums.stored);
});

test('when a later answer changes, removes or adds final values, the old ones are stored as revisions with its step and the reason', async () => {
  const id = await newSeries('c-coin');
  await answer(id, [0, 50], 60, { without: [20] });
  // The second answer has day 20, lacks day 30 and has other volumes: all 50 slots stay final.
  await answer(id, [0, 50], 90, { without: [30], times: 2 });
  const sums = await sumsOf(id);
  expect(sums.found).toEqual(sums.stored);
  const revisions = await database.sql<{ reason: string; step: number; n: number; knownAt: number }[]>`
    select reason, step, known_at, count(*) as n from market.revision where series_id = ${id} group by 1, 2, 3 order by 1`;
  expect(revisions.map((row) => ({ ...row }))).toEqual([
    { reason: 'late answer', step: 2, knownAt: day(90), n: 49 },
    { reason: 'removed by upstream', step: 2, knownAt: day(90), n: 1 },
  ]);
  expect((await stepsOf(id))[1]).toMatchObject({ number: 2, slots: [{ from: day(0), to: day(50) }] });
  const [series] = await database.sql<{ emptyOnce: Span[] }[]>`select empty_once from market.series where id = ${id}`;
  expect(series!.emptyOnce).toEqual([{ from: day(30), to: day(31) }]);
});

test('an answer that repeats an earlier one adds no step', async () => {
  const id = await newSeries('d-coin');
  await answer(id, [0, 50], 60, { without: [20] });
  await answer(id, [0, 50], 61, { without: [20] });
  expect(await stepsOf(id)).toHaveLength(1);
});

test('an empty slot counts as told once, after a second answer as told twice, and after a candle as not empty', async () => {
  const id = await newSeries('e-coin');
  const empties = async () => {
    const [row] = await database.sql<{ once: number; twice: number }[]>`
      select slots_empty_once as once, slots_empty_twice as twice from market.coverage where coin_id = 'e-coin'`;
    return [row!.once, row!.twice];
  };
  await answer(id, [0, 50], 60, { without: [20, 21, 30] });
  expect(await empties()).toEqual([3, 0]);
  await answer(id, [10, 25], 61, { without: [20, 21] });
  expect(await empties()).toEqual([1, 2]);
  await answer(id, [0, 50], 62, { without: [20] });
  // Days 30 and 21 have a candle now.
  expect(await empties()).toEqual([0, 1]);
});

test('when a span is mended, its final values are stored as revisions', async () => {
  const id = await newSeries('f-coin');
  await answer(id, [0, 50], 60);
  await database.sql`select ops.uncover(${id}, ${day(10)}::timestamptz, ${day(12)}::timestamptz)`;
  const sums = await sumsOf(id);
  expect(sums.found).toEqual(sums.stored);
  expect(sums.stored).toEqual(['50', sums.stored[1], '48']);
  const revisions =
    await database.sql`select open_time, reason, step from market.revision where series_id = ${id} order by 1`;
  expect(revisions.map((row) => ({ ...row }))).toEqual([
    { openTime: day(10), reason: 'mended', step: 2 },
    { openTime: day(11), reason: 'mended', step: 2 },
  ]);
  expect((await stepsOf(id))[1]).toMatchObject({ kind: 'mended', slots: [{ from: day(10), to: day(12) }] });
  await answer(id, [10, 12], 1_200);
  expect((await sumsOf(id)).stored[2]).toBe('50');
  expect(await stepsOf(id)).toHaveLength(3);
});

test('reopening a contradicted slot reopens only the unbroken stretch that the same answer told', async () => {
  const id = await newSeries('g-coin');
  const missing = async () => {
    const [row] = await database.sql<{ missing: Span[] }[]>`
      select ${[{ from: day(0), to: day(60) }]}::tstzmultirange - covered as missing from market.series where id = ${id}`;
    return row!.missing;
  };
  // One answer per day, all in one row of evidence; then three days; then an answer about two stretches around those three.
  for (let n = 0; n < 40; n++) await answer(id, [n, n + 1], n + 2);
  await answer(id, [45, 48], 60);
  await answer(id, [40, 60], 62);
  expect(await missing()).toEqual([]);
  await reopenToldOnce(database.sql, id, day(20));
  expect(await missing()).toEqual([{ from: day(20), to: day(21) }]);
  await reopenToldOnce(database.sql, id, day(42));
  expect(await missing()).toEqual([
    { from: day(20), to: day(21) },
    { from: day(40), to: day(45) },
  ]);
});

test('a slot that two answers told is not reopened; one that a single answer told is reopened once, with the unbroken stretch around it', async () => {
  const id = await newSeries('h-coin');
  const covered = async () => (await sumsOf(id)).stored[2];
  // Nine days: a smaller answer would share a row with the one before.
  await answer(id, [0, 9], 60);
  await answer(id, [9, 18], 61, { toldTwice: true });
  await answer(id, [18, 27], 62);
  expect((await stepsOf(id)).map(({ detail }) => detail)).toEqual([null, 'told twice', null]);
  await database.sql`delete from ops.fetch where series_id = ${id}`;
  await reopenToldOnce(database.sql, id, day(10));
  expect(await covered()).toBe('27');
  await reopenToldOnce(database.sql, id, day(20));
  await reopenToldOnce(database.sql, id, day(19));
  expect(await covered()).toBe('18');
  expect((await stepsOf(id)).map(({ kind }) => kind)).toEqual(['answer', 'answer', 'answer', 'mended']);
});

test('renaming a coin and removing old candles each add a step', async () => {
  const id = await newSeries('old-coin');
  await answer(id, [0, 500], 600);
  await recordCoins(database.sql, [coinNamed('new-coin')], day(1_001));
  await recordRenames(database.sql, [{ oldId: 'old-coin', newId: 'new-coin', at: day(1_001) }], 'changelog');
  await applyTracks(database.sql, day(1_001));
  const never = { tickers: null, global: null, exchanges: null, fetches: null };
  const candles = { '5m': null, '15m': null, '30m': null, '1h': null, '6h': null, '12h': null };
  const keep = { ...never, candles: { ...candles, '24h': 200 * DAY } };
  await removeOld(database, { keep: keep as never, now: day(600) });
  const steps = await stepsOf(id);
  expect(steps).toMatchObject([
    { kind: 'answer' },
    { kind: 'renamed', slots: [], detail: 'old-coin new-coin', knownAt: day(1_001) },
    { kind: 'retention', slots: [{ from: day(0), to: day(366) }], knownAt: day(1_001) },
  ]);
  const [evidence] =
    await database.sql`select candles from market.evidence where series_id = ${id} and kind = 'retention'`;
  expect(evidence!.candles).toBe(366);
  const sums = await sumsOf(id);
  expect(sums.found).toEqual(sums.stored);
  expect(sums.stored[0]).toBe('134');
});

test('when the candles of an answer cannot be written, only the call for this answer fails', async () => {
  const id = await newSeries('unwritten-coin');
  // The partition of these days is missing, as after retention, and this answer contradicts an older one.
  await answer(id, [1_200, 1_220], 1_300, { without: Array.from({ length: 20 }, (_, i) => 1_200 + i) });
  const unhandled: unknown[] = [];
  const keep = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', keep);
  try {
    await expect(answer(id, [1_200, 1_220], 1_301)).rejects.toThrow('no partition');
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', keep);
  }
});
