import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
import { after, createWarehouse, iso, slot } from './tampering.ts';

let database: TestDatabase;
let [a, b] = [0, 0];
beforeAll(async () => {
  ({ database, a, b } = await createWarehouse());
});
afterAll(() => database.drop());

test('an untouched warehouse has no difference', async () => {
  const { proofs, all } = await after(database, 'select 1');
  expect(all).toEqual([]);
  expect(proofs).toHaveLength(2);
});

const day = (n: number) => `'${iso(n)}'::timestamptz`;
const of = (series: 'A' | 'B', n: number) => `series_id = :${series} and open_time = ${day(n)}`;

/** The last of each: the slots that must be named, where the data allow it. */
const TABLE: readonly (readonly [name: string, damage: string, days: readonly number[]])[] = [
  ['one bit of a price', `update market.candle set close = close + 2e-16 * close where ${of('A', 50)}`, [50]],
  [
    'one price of a slot that was mended before',
    `update market.candle set close = close * 1.001 where ${of('A', 105)}`,
    [105],
  ],
  [
    'one price of a slot that a late answer changed',
    `update market.candle set open = open * 1.0001 where ${of('A', 371)}`,
    [371],
  ],
  ['one price of a refresh', `update market.candle set close = close * 1.001 where ${of('A', 733)}`, [733]],
  [
    'all prices × 10',
    'update market.candle set open = open * 10, high = high * 10, low = low * 10, close = close * 10 where series_id = :A',
    [],
  ],
  [
    'two rows swapped, of two answers',
    `update market.candle c set close = o.close, open = o.open, high = o.high, low = o.low from market.candle o where c.series_id = :A and o.series_id = :A and ((c.open_time, o.open_time) in ((${day(10)}, ${day(500)}), (${day(500)}, ${day(10)})))`,
    [10, 500],
  ],
  [
    'a series shifted by a day',
    `update market.candle set open_time = open_time + interval '10000 days' where series_id = :B; update market.candle set open_time = open_time - interval '9999 days' where series_id = :B`,
    [],
  ],
  [
    'a row deleted, and its count',
    `delete from market.candle where ${of('A', 60)}; update market.series set covered_candles = covered_candles - 1 where id = :A`,
    [60],
  ],
  [
    'a row deleted, its count and the digest of the series',
    `update market.series set covered_candles = covered_candles - 1, candles = candles - 1, digest = ops.modulo_2_64(digest::numeric - (select market.candle_hash(open_time, open, high, low, close, volume, market_cap) from market.candle where ${of('A', 60)})) where id = :A; delete from market.candle where ${of('A', 60)}`,
    [60],
  ],
  [
    'rows of another series moved in',
    `delete from market.candle where series_id = :A and open_time < ${day(10)}; update market.candle set series_id = :A where series_id = :B and open_time < ${day(10)}`,
    [],
  ],
  [
    'coins swapped',
    `update market.series set coin_id = coin_id || '?' where id = :A; update market.series set coin_id = 'coin-0' where id = :B; update market.series set coin_id = 'coin-1' where id = :A`,
    [],
  ],
  [
    'coverage over years that nobody asked',
    `update market.series set covered = covered + '{[2010-01-01Z,2015-01-01Z)}' where id = :A`,
    [],
  ],
  [
    'coverage off the grid',
    `update market.series set covered = covered + tstzmultirange(tstzrange(upper(covered), upper(covered) + interval '1 hour')) where id = :A`,
    [],
  ],
  [
    'coverage off the grid by a microsecond',
    `update market.series set covered = covered + tstzmultirange(tstzrange(upper(covered), upper(covered) + interval '1 microsecond')) where id = :A`,
    [],
  ],
  [
    'coverage that shrank',
    `update market.series set covered = covered - tstzmultirange(tstzrange(${day(3)}, ${day(4)})) where id = :A`,
    [3],
  ],
  [
    'a row outside coverage',
    `insert into market.candle select open_time + interval '5 days', open, high, low, close, volume, market_cap, series_id, interval from market.candle where ${of('A', 735)}`,
    [740],
  ],
  ['the requests of a series', 'delete from ops.fetch where series_id = :B', []],
  ['all requests', 'delete from ops.fetch', []],
  ['all revisions', 'delete from market.revision', []],
  ['a value of a revision', `update market.revision set close = close * 1.1 where ${of('A', 371)}`, [371]],
  [
    'a revision that nobody made',
    `insert into market.revision (series_id, open_time, seen_at, step, close) values (:A, ${day(20)}, now(), 2, 1)`,
    [20],
  ],
  ['a revision of another step', `update market.revision set step = 1 where ${of('A', 371)}`, [371]],
  [
    'a claim that is never asked again',
    `insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at) values (:A, tstzrange('2020-01-01Z', '2020-01-02Z'), 'provisional', 1, now(), 'infinity')`,
    [],
  ],
  [
    'a claim that is asked again in a thousand days',
    `insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at) values (:A, tstzrange('2020-01-01Z', '2020-01-02Z'), 'malformed', 3, now(), now() + interval '1000 days')`,
    [],
  ],
  [
    'thirty invented series with all their candles',
    `insert into market.series (coin_id, quote, interval, covered, covered_candles, candles, digest)
      select c.id, s.quote, s.interval, s.covered, s.covered_candles, s.candles, s.digest
      from (select 'invented-' || n as id from generate_series(1, 30) n) c cross join (select * from market.series where id = :B) s;
    insert into market.candle select c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap, s.id, c.interval
      from market.candle c join market.series s on s.coin_id like 'invented-%' where c.series_id = :B`,
    [],
  ],
  [
    'an invented series with its candles, its counts and its digest',
    `insert into market.series (coin_id, quote, interval, covered, covered_candles, candles, digest) select coin_id, 'btc', interval, covered, covered_candles, candles, digest from market.series where id = :B; insert into market.candle select open_time, open, high, low, close, volume, market_cap, (select max(id) from market.series), interval from market.candle where series_id = :B`,
    [],
  ],
  ['candles of no series', `update market.candle set series_id = 999 where ${of('B', 7)}`, [7]],
  ['a row of evidence deleted', 'delete from market.evidence where series_id = :A and number = 2', []],
  ['the newest row of evidence deleted', 'delete from market.evidence where series_id = :B and number = 2', []],
  [
    'slots of evidence',
    `update market.evidence set slots = slots - tstzmultirange(tstzrange(${day(5)}, ${day(6)})) where series_id = :A and number = 2`,
    [],
  ],
  ['the digest of evidence', 'update market.evidence set digest = digest + 1 where series_id = :A and number = 1', []],
  [
    'the locator of evidence',
    'update market.evidence set locator = locator + 1 where series_id = :A and number = 1',
    [],
  ],
  [
    'when a step was known',
    `update market.evidence set known_at = known_at - interval '1 second' where series_id = :A and number = 1`,
    [],
  ],
  [
    'when a step was known, by a microsecond',
    `update market.evidence set known_at = known_at + interval '1 microsecond' where series_id = :A and number = 1`,
    [],
  ],
  [
    'when a step of several was known',
    'update market.evidence set step_seconds[1] = 1, step_seconds[2] = 2 where series_id = :A and cardinality(step_seconds) > 2',
    [],
  ],
  ['a link of evidence', `update market.evidence set link = sha256(link) where series_id = :A and number = 1`, []],
  ['the link of the series', 'update market.series set link = sha256(link) where id = :A', []],
  ['the number of steps', 'update market.series set steps = steps + 1 where id = :A', []],
  [
    'a slot with a candle told empty',
    `update market.series set empty_once = tstzmultirange(tstzrange(${day(5)}, ${day(6)})) where id = :A`,
    [5],
  ],
  [
    'a slot outside coverage told empty',
    `update market.series set empty_once = '{[2010-01-01Z,2010-01-02Z)}' where id = :A`,
    [],
  ],
  ['another coin', `update market.series set coin_id = 'eve' where id = :A`, []],
  [
    'how many slots each of several steps told',
    'update market.evidence set step_slots = array_fill(2, array[cardinality(step_seconds)]) where series_id = :A and step_seconds is not null',
    [],
  ],
  [
    'a retention that never was',
    `insert into market.evidence (series_id, number, kind, slots, as_of, known_at, candles, digest, locator, link) select id, steps + 1, 'retention', tstzmultirange(tstzrange(${day(0)}, ${day(30)})), now(), now(), 30, 0, 0, link from market.series where id = :A; update market.series set steps = steps + 1, covered = covered - tstzmultirange(tstzrange(${day(0)}, ${day(30)})) where id = :A; delete from market.candle where series_id = :A and open_time < ${day(30)}`,
    [],
  ],
  ['a document', `update market.document set received = '{"id":"sam","name":"Eve"}'`, []],
  ['the digest of a document', 'update market.document set received_sha256 = sha256(received_sha256)', []],
  ['the digest of a document removed', 'update market.document set received_sha256 = null', []],
  [
    'an old version of a document',
    `update market.document_revision set received = '{"id":"sam","name":"Eve"}' where valid_from = (select min(valid_from) from market.document_revision)`,
    [],
  ],
  [
    'an old version of a document deleted',
    'delete from market.document_revision where valid_from = (select max(valid_from) from market.document_revision)',
    [],
  ],
  [
    'an old version of a document invented',
    `insert into market.document_revision select kind, id, valid_from + interval '1 hour', valid_to, '{}', sha256('{}') from market.document_revision where valid_from = (select min(valid_from) from market.document_revision)`,
    [],
  ],
  ['−0 for 0', `update market.candle set volume = '-0' where ${of('A', 33)}`, [33]],
  ['null for a number', `update market.candle set market_cap = null where ${of('A', 34)}`, [34]],
  ['the digest of the series', 'update market.series set digest = digest # 1 where id = :A', []],
  ['the count of the series', 'update market.series set candles = candles + 1 where id = :A', []],
];

test.each(TABLE)('verify finds, and mends: %s', async (_, damage, days) => {
  const { proofs, all, unmended } = await after(database, damage.replaceAll(':A', `${a}`).replaceAll(':B', `${b}`));
  expect(all).not.toEqual([]);
  expect(unmended).toEqual([]);
  // Where the data allow it: these slots, and no others.
  if (days.length > 0) {
    const named = proofs.flatMap((proof) => proof.stretches);
    expect(named).toEqual(days.map(slot));
  }
});

describe('who changes candles and mends them hides nothing', () => {
  const mend = (from: number, to: number) => `select ops.uncover(:A, ${day(from)}, ${day(to)})`;
  /** What verify finds in the series after the statements, and what the newest step of its evidence says. */
  async function mended(...statements: string[]) {
    const { proofs, all } = await after(database, statements.join(';').replaceAll(':A', `${a}`));
    return { all, notes: proofs.find(({ seriesId }) => seriesId === a)!.notes };
  }
  const DIGESTS = / \((digest |locator \+)[0-9a-f]{16}\)/g;
  const differing = (text: string) =>
    /what was found differs from what was told: (.*)$/.exec(text)?.[1]?.replace(DIGESTS, '');

  test.each<[string, string, string]>([
    [
      'one changed value is named',
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 50)}; ${mend(50, 51)}`,
      'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
    ],
    [
      'so it is in a longer stretch',
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 50)}; ${mend(20, 90)}`,
      'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
    ],
    [
      'a deleted row',
      `delete from market.candle where ${of('A', 60)}; ${mend(0, 366)}`,
      'step 2 told 366 candles, found were 365, the slot 2023-03-02 00:00:00Z differs',
    ],
    [
      'several of one answer',
      `update market.candle set volume = volume * 2 + 1 where series_id = :A and open_time in (${day(50)}, ${day(51)}); ${mend(0, 366)}`,
      'step 2 told 366 candles, found were 366, which of its slots is not known',
    ],
    [
      'of two answers, one of which a later one changed in part',
      `update market.candle set volume = volume * 2 + 1 where series_id = :A and open_time in (${day(50)}, ${day(400)}); ${mend(0, 500)}`,
      'step 1 told 366 candles, found were 366, the slot 2024-02-05 00:00:00Z differs; ' +
        'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
    ],
    [
      'what a late answer told',
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 371)}; ${mend(371, 372)}`,
      'step 3 told 2 candles, found were 2, the slot 2024-01-07 00:00:00Z differs',
    ],
    [
      'what was told after an earlier mending',
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 105)}; ${mend(100, 110)}`,
      'step 9 told 10 candles, found were 10, the slot 2023-04-16 00:00:00Z differs',
    ],
  ])('%s', async (_, damage, expected) => {
    const { all, notes } = await mended(damage);
    expect(all).toEqual([]);
    expect(notes.map(differing)).toEqual([expected]);
  });

  test('what did not differ is not doubted, also beside a slot that does', async () => {
    expect(await mended(mend(0, 736))).toEqual({ all: [], notes: [] });
    const { all, notes } = await mended(
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 50)}`,
      mend(51, 99),
    );
    expect(all).toContainEqual(expect.stringMatching(/^2023-02-20 .* the candle is not the one that the answer told/));
    expect(notes).toEqual([]);
  });

  test.each([
    [
      'an old value of a slot that was mended',
      mend(371, 372),
      `update market.revision set close = close * 2 where ${of('A', 371)} and reason <> 'mended'`,
    ],
    [
      'the same, of one that had been changed before',
      `update market.candle set volume = volume * 2 + 1 where ${of('A', 50)}; ${mend(0, 400)}`,
      `update market.revision set close = close * 2 where ${of('A', 371)} and reason <> 'mended'`,
    ],
  ])('who changes later what was mended: %s', async (_, first, then) => {
    const { all } = await mended(first, then);
    expect(all).toContainEqual(expect.stringMatching(/what is kept of step 1 was changed after it was mended/));
  });

  test('nobody can take that out of the evidence, and the story of the slot tells it', async () => {
    const damage = [`update market.candle set volume = volume * 2 + 1 where ${of('A', 50)}`, mend(50, 51)];
    const newest = `series_id = :A and number = (select max(number) from market.evidence where series_id = :A)`;
    for (const detail of ['null', `replace(detail, '366', '365')`]) {
      const { all } = await mended(...damage, `update market.evidence set detail = ${detail} where ${newest}`);
      expect(all).toContainEqual(expect.stringContaining('is not linked to the step before it'));
    }
    const told = await mended(
      ...damage,
      `do $$ begin if not exists (select from market.story('coin-0', '24h', ${day(50)}) where event = 'mended'
        and detail like '%requested again (what was found differs from what was told: step 2 %') then raise 'not told'; end if; end $$`,
    );
    expect(told.all).toEqual([]);
  });
});
