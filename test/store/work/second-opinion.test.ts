import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { ASK_AGAIN_MS, CONTRADICTED_HISTORY_LIMIT } from '../../../src/core/second-opinion.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import {
  type Claim,
  type ClaimId,
  dropClaim,
  findClaim,
  type Opinion,
  readClaims,
  recordAnswer,
  replacePending,
  type Statement,
} from '../../../src/store/work/second-opinion.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const NOON = Date.UTC(2024, 0, 1, 12, 0, 0, 123);
const LIST: ClaimId = { claim: 'short list', key: 'tags' };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.sql`truncate ops.second_opinion`;
});

/** Records an answer of this instant that agrees, except for what `said` changes. */
async function hear(id: ClaimId, at: number, said: Partial<Statement> = {}): Promise<Opinion> {
  const opinion = await database.sql.begin((tx) =>
    recordAnswer(tx, id, { sentAt: at, heardAt: at, ageMs: 0 }, () => ({ says: 'agrees', ...said })),
  );
  return opinion as Opinion;
}
const claims = async () => database.sql<{ claim: string; key: string; answers: number }[]>`
  select claim, key, answers from ops.second_opinion order by claim, key`;

test('a claim is stored with its evidence, believed after a second answer, and kept until it is dropped', async () => {
  expect(await findClaim(database.sql, LIST)).toBeNull();
  const first: Claim = {
    answers: 1,
    requestedAt: NOON,
    retryAt: NOON + ASK_AGAIN_MS,
    evidence: { rows: 3, text: 'a\ufffd' },
  };
  expect(await hear(LIST, NOON, { evidence: { rows: 3, text: 'a\0' } })).toEqual({ kind: 'waiting', claim: first });
  expect(await findClaim(database.sql, LIST)).toEqual(first);
  // Too early to count: the stored evidence does not change.
  expect(await hear(LIST, NOON + 1, { evidence: { rows: 9 } })).toEqual({ kind: 'waiting', claim: first });
  const second = {
    answers: 2,
    requestedAt: first.retryAt,
    retryAt: first.retryAt + ASK_AGAIN_MS,
    evidence: { rows: 4 },
  };
  expect(await hear(LIST, first.retryAt, { evidence: { rows: 4 } })).toEqual({ kind: 'believed', claim: second });
  expect(await findClaim(database.sql, LIST)).toEqual(second);
  await dropClaim(database.sql, LIST);
  expect(await claims()).toEqual([]);
});

test('a contradiction drops the claim, and no other', async () => {
  await hear(LIST, NOON);
  await hear({ ...LIST, key: 'coins' }, NOON);
  expect(await hear(LIST, NOON + 1, { says: 'contradicts' })).toEqual({ kind: 'dropped', claim: null });
  expect(await hear({ ...LIST, key: 'people' }, NOON, { says: 'contradicts' })).toMatchObject({ kind: 'dropped' });
  expect(await claims()).toEqual([{ claim: 'short list', key: 'coins', answers: 1 }]);
});

test('a caller may give another rule, and gets the earlier state back', async () => {
  const limit: ClaimId = { claim: 'history limit', key: 'free 1h' };
  const seen: (number | null)[] = [];
  const kinds: string[] = [];
  for (let at = NOON; at < NOON + 4; at++) {
    const { kind } = await database.sql.begin((tx) =>
      recordAnswer(tx, limit, { sentAt: at, heardAt: at, ageMs: 0 }, (before) => {
        seen.push(before?.answers ?? null);
        return { says: 'agrees', rule: CONTRADICTED_HISTORY_LIMIT };
      }),
    );
    kinds.push(kind);
  }
  expect(seen).toEqual([null, 1, 2, 3]);
  expect(kinds).toEqual(['waiting', 'waiting', 'waiting', 'believed']);
});

test('answers that many processes record at the same time count one after the other', async () => {
  const limit: ClaimId = { claim: 'history limit', key: 'free 1h' };
  const opinions = await Promise.all(
    Array.from({ length: 8 }, () =>
      database.sql.begin((tx) =>
        recordAnswer(tx, limit, { sentAt: NOON, heardAt: NOON, ageMs: 0 }, () => ({ says: 'agrees' })),
      ),
    ),
  );
  // One request each, sent at the same instant: none can be the second opinion about another one.
  expect(opinions.map(({ kind }) => kind)).toEqual(Array.from({ length: 8 }, () => 'waiting'));
  expect(await claims()).toEqual([{ claim: 'history limit', key: 'free 1h', answers: 1 }]);
});

test('an answer whose transaction fails does not count', async () => {
  const failing = database.sql.begin(async (tx) => {
    await recordAnswer(tx, LIST, { sentAt: NOON, heardAt: NOON, ageMs: 0 }, () => ({ says: 'agrees' }));
    throw new Error('cut off');
  });
  await expect(failing).rejects.toThrow('cut off');
  expect(await claims()).toEqual([]);
});

test('claims are read by name and by the beginning of their key; claims without an answer for a day are deleted', async () => {
  await hear({ claim: 'refused chunk', key: 'free chunk-1' }, NOON);
  await hear({ claim: 'refused chunk', key: 'freelance chunk-1' }, NOON);
  await hear({ claim: 'history limit', key: 'free 1h' }, NOON + HOUR);
  const read = (since: number) =>
    readClaims(database.sql, { claims: ['refused chunk', 'history limit'], prefix: 'free ', since });
  expect((await read(NOON - 1)).map(({ key }) => key).sort()).toEqual(['free 1h', 'free chunk-1']);
  expect((await read(NOON)).map(({ key }) => key)).toEqual(['free 1h']);
  await hear({ claim: 'refused chunk', key: 'free chunk-2' }, NOON + DAY + 1);
  expect((await claims()).map(({ key }) => key)).toEqual(['free 1h', 'free chunk-2']);
});

test('claims about slots belong to a series, and are replaced as a whole', async () => {
  const { sql } = database;
  const coin = { id: 'a-a', name: 'A', symbol: 'A', rank: 1, is_new: false, is_active: true, type: 'coin' };
  await recordCoins(sql, [coin], NOON);
  const wanted = {
    coinIds: ['a-a'],
    quote: 'usd',
    interval: '1h',
    span: { from: NOON, to: NOON + DAY },
    priority: 0,
  } as const;
  const [seriesId = 0] = await wantSeries(sql, wanted);
  await hear(LIST, NOON);
  const empty = {
    span: { from: NOON, to: NOON + HOUR },
    claim: 'unconfirmed',
    answers: 1,
    requestedAt: NOON,
    retryAt: NOON + HOUR,
  } as const;
  const last = { ...empty, claim: 'malformed', answers: 3, retryAt: Number.POSITIVE_INFINITY } as const;
  await replacePending(sql, seriesId, [], [empty]);
  await replacePending(sql, seriesId, [empty], [last]);
  const rows = await sql`
    select span, claim, answers, requested_at, retry_at from ops.second_opinion where series_id = ${seriesId}`;
  expect(rows).toEqual([last]);
  expect(await findClaim(sql, LIST)).toMatchObject({ answers: 1 });
});
