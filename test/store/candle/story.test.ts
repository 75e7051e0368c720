/** `market.story`: what happened to one slot, readable for analysts. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed, day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(400) });
});
afterAll(() => database.drop());

/** Leaves out the rows that the clock of the database dates: since when the series is wanted, and now. */
async function storyOf(coinId: string, n: number) {
  const rows = await database.sql.begin(async (tx) => {
    await tx`set local role analyst`;
    return tx<{ at: number; event: string; detail: string }[]>`
      select at, event, detail from market.story(${coinId}, '24h', ${day(n) + 3_600_000}::timestamptz)`;
  });
  return rows.map((row) => ({ ...row }));
}

test('the story of a slot lists that it became final, was revised, mended and answered again', async () => {
  const id = await newDailySeries(database.sql, 'a-coin');
  await storeAnswer(database.sql, id, [0, 10], 20);
  await storeAnswer(database.sql, id, [0, 10], 30, { times: 2 });
  await database.sql`select ops.uncover(${id}, ${day(5)}::timestamptz, ${day(6)}::timestamptz)`;
  await storeAnswer(database.sql, id, [0, 10], 2_000, { times: 3 });
  const story = await storyOf('a-coin', 5);
  const [first, revised] = story;
  const volume = (detail: string) => Number(/volume (\d+)/.exec(detail)![1]);
  expect(first).toMatchObject({ at: day(20), event: 'final' });
  expect(first!.detail).toMatch(
    /^An answer made the slot final: open .* Request \d+, as of 2024-01-21 00:00:00Z, SHA-256 of the answer (07){32}\.$/,
  );
  expect(revised).toMatchObject({ at: day(30), event: 'revised' });
  const [before, now] = revised!.detail.split('Now: ');
  expect(volume(before!)).toBe(volume(first!.detail));
  expect(volume(now!)).toBe(2 * volume(first!.detail));
  const events = story.map(({ event }) => event);
  expect(events.filter((event) => event === 'mended')).toHaveLength(1);
  expect(events.filter((event) => event === 'final')).toHaveLength(2);
  expect(volume(story.find(({ event }) => event === 'mended')!.detail)).toBe(2 * volume(first!.detail));
  expect(volume(story.find(({ event }) => event === 'now')!.detail)).toBe(3 * volume(first!.detail));
});

test('within one second, the story begins with why the slot is wanted', async () => {
  const id = await newDailySeries(database.sql, 'g-coin');
  await storeAnswer(database.sql, id, [0, 10], 20);
  await database.sql`update market.series set created_at = ${day(20) + 600}::timestamptz where id = ${id}`;
  expect((await storyOf('g-coin', 5)).map(({ event }) => event)).toEqual(['wanted', 'final', 'now']);
});

test('for small answers that follow each other only the last request is kept, and the story says so', async () => {
  const id = await newDailySeries(database.sql, 'd-coin');
  for (const n of [0, 1, 2]) await storeAnswer(database.sql, id, [n, n + 1], 20 + n);
  const told = async (n: number) => (await storyOf('d-coin', n)).find(({ event }) => event === 'final')!.detail;
  expect(await told(1)).toMatch(
    /\. Its request is not kept: of small answers that continue each other, only the last one's is\.$/,
  );
  expect(await told(2)).toMatch(/ Request \d+, as of 2024-01-23 00:00:00Z, SHA-256 of the answer (07){32}\.$/);
});

test('the story says that an implausible answer was believed because a second one agreed', async () => {
  const id = await newDailySeries(database.sql, 'e-coin');
  await storeAnswer(database.sql, id, [0, 10], 20, { toldTwice: true });
  expect((await storyOf('e-coin', 5))[0]!.detail).toMatch(
    /^An answer made the slot final: open .*\. An answer before it was implausible, and said the same\. Request \d+, as of/,
  );
});

test('the story of an empty slot says whether one answer told so or two', async () => {
  const id = await newDailySeries(database.sql, 'b-coin');
  await storeAnswer(database.sql, id, [0, 10], 20, { without: [5] });
  const now = async () => (await storyOf('b-coin', 5)).find(({ event }) => event === 'now')!.detail;
  expect((await storyOf('b-coin', 5))[0]!.detail).toMatch(/^An answer made the slot final: no candle\. Request/);
  expect(await now()).toBe('The slot is known to be empty: one answer said so.');
  await storeAnswer(database.sql, id, [0, 10], 30, { without: [5] });
  expect(await now()).toBe('The slot is known to be empty: two answers said so.');
});

test('the story of a slot that was never requested says so; a coin without a series has no story; an unknown coin is an error', async () => {
  await newDailySeries(database.sql, 'c-coin');
  const story = await storyOf('c-coin', 5);
  expect(story.map(({ event }) => event)).toEqual(['wanted', 'now', 'next']);
  expect(story[2]!.detail).toBe('It is missing: not asked yet. The next backfill or refresh requests it.');
  await recordCoins(database.sql, [coinNamed('other-coin')], day(0));
  expect(await storyOf('other-coin', 5)).toEqual([]);
  await expect(storyOf('no-coin', 5)).rejects.toThrow('no coin is called no-coin');
});

test('the story does not present a value that was changed by hand as what the answer told', async () => {
  const { sql } = database;
  const id = await newDailySeries(sql, 'f-coin');
  await storeAnswer(sql, id, [0, 10], 20);
  await sql`update market.candle set volume = 987654 where series_id = ${id} and open_time = ${day(5)}`;
  await sql`select ops.uncover(${id}, ${day(4)}::timestamptz, ${day(6)}::timestamptz)`;
  const told = async (n: number) => (await storyOf('f-coin', n))[0]!.detail;
  expect(await told(5)).toMatch(
    /^An answer made the slot final: a value that is not known\. When it was mended, open .*volume 987654.* was there, and the digest of the answer is another\. Request/,
  );
  expect(await told(4)).toMatch(/^An answer made the slot final: open/);
  const mended = (await storyOf('f-coin', 4)).find(({ event }) => event === 'mended')!;
  expect(mended.detail).not.toContain('kept before');
});
