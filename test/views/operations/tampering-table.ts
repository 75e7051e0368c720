/** Ways to damage a warehouse, as statements about the rows of candles or of prices (`inWords`). */
import { iso } from './tampering.ts';

export const day = (n: number) => `'${iso(n)}'::timestamptz`;
export const of = (series: 'A' | 'B', n: number) => `series_id = :${series} and {time} = ${day(n)}`;

export const ofRevision = (series: 'A' | 'B', n: number) => `series_id = :${series} and open_time = ${day(n)}`;
/** The rows `c` once more, each with another value in one column. */
const copied = (change: string) =>
  `insert into {rows} select (jsonb_populate_record(c, jsonb_build_object(${change}))).*`;

/** The last element of each: the slots that verify must name, where the data allow it. */
export const TABLE: readonly (readonly [name: string, damage: string, days: readonly number[]])[] = [
  ['one bit of a price', `update {rows} set {close} = {close} + 2e-16 * {close} where ${of('A', 50)}`, [50]],
  [
    'one price of a slot that was mended before',
    `update {rows} set {close} = {close} * 1.001 where ${of('A', 105)}`,
    [105],
  ],
  [
    'one price of a slot that a late answer changed',
    `update {rows} set {open} = {open} * 1.0001 where ${of('A', 371)}`,
    [371],
  ],
  ['one price of a refresh', `update {rows} set {close} = {close} * 1.001 where ${of('A', 733)}`, [733]],
  [
    'an answer of which the evidence says that retention removed it',
    `update market.evidence set kind = 'retention' where series_id = :A and number = 1`,
    [],
  ],
  ['all prices × 10', 'update {rows} set {prices × 10} where series_id = :A', []],
  [
    'two rows swapped, of two answers',
    `update {rows} c set {prices of o} from {rows} o where c.series_id = :A and o.series_id = :A and ((c.{time}, o.{time}) in ((${day(10)}, ${day(500)}), (${day(500)}, ${day(10)})))`,
    [10, 500],
  ],
  [
    'a series shifted by a day',
    `update {rows} set {time} = {time} + interval '10000 days' where series_id = :B; update {rows} set {time} = {time} - interval '9999 days' where series_id = :B`,
    [],
  ],
  [
    'a row deleted, and its count',
    `delete from {rows} where ${of('A', 60)}; update market.series set covered_candles = covered_candles - 1 where id = :A`,
    [60],
  ],
  [
    'a row deleted, its count and the digest of the series',
    `update market.series set covered_candles = covered_candles - 1, candles = candles - 1, digest = ops.modulo_2_64(digest::numeric - (select {hash} from {rows} where ${of('A', 60)})) where id = :A; delete from {rows} where ${of('A', 60)}`,
    [60],
  ],
  [
    'rows of another series moved in',
    `delete from {rows} where series_id = :A and {time} < ${day(10)}; update {rows} set series_id = :A where series_id = :B and {time} < ${day(10)}`,
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
    'coverage until a year that no date of JavaScript has, with a row in it',
    `${copied(`'{time}', c.{time} + interval '5 days'`)} from {rows} c where ${of('A', 735)};
    update market.series set covered = covered + tstzmultirange(tstzrange(upper(covered), '280000-01-01Z')), covered_candles = covered_candles + 1,
      candles = candles + 1, digest = ops.modulo_2_64(digest::numeric + (select {hash} from {rows} where ${of('A', 740)})) where id = :A`,
    [],
  ],
  [
    'coverage until the last instant of Postgres',
    `update market.series set covered = covered + tstzmultirange(tstzrange(upper(covered), '294276-12-31 23:59:59.999999Z')) where id = :A`,
    [],
  ],
  [
    'coverage until infinity',
    `update market.series set covered = covered + tstzmultirange(tstzrange(upper(covered), 'infinity')) where id = :A`,
    [],
  ],
  [
    'coverage that shrank',
    `update market.series set covered = covered - tstzmultirange(tstzrange(${day(3)}, ${day(4)})) where id = :A`,
    [3],
  ],
  [
    'a row outside coverage',
    `${copied(`'{time}', c.{time} + interval '5 days'`)} from {rows} c where ${of('A', 735)}`,
    [740],
  ],
  ['the requests of a series', 'delete from ops.fetch where series_id = :B', []],
  ['all requests', 'delete from ops.fetch', []],
  ['all revisions', 'delete from market.revision', []],
  ['a value of a revision', `update market.revision set close = close * 1.1 where ${ofRevision('A', 371)}`, [371]],
  [
    'a revision that nobody made',
    `insert into market.revision (series_id, open_time, seen_at, step, close) values (:A, ${day(20)}, now(), 2, 1)`,
    [20],
  ],
  ['a revision of another step', `update market.revision set step = 1 where ${ofRevision('A', 371)}`, [371]],
  [
    'a revision of a step that is about other slots',
    `update market.revision set step = 2 where ${ofRevision('A', 371)}`,
    [371],
  ],
  [
    'a revision of a step that shares its row with others, about other slots',
    `update market.revision set step = 6 where ${ofRevision('A', 375)}`,
    [375],
  ],
  [
    'when a late answer replaced a value',
    `update market.revision set known_at = null where ${ofRevision('A', 371)}`,
    [371],
  ],
  ['when a repair kept a value', `update market.revision set known_at = null where ${ofRevision('A', 105)}`, [105]],
  [
    'as of when a value was kept',
    `alter table market.revision alter seen_at drop not null; update market.revision set seen_at = null where ${ofRevision('A', 105)}`,
    [105],
  ],
  [
    'why a value was replaced',
    `alter table market.revision alter reason drop not null; update market.revision set reason = null where ${ofRevision('A', 371)}`,
    [371],
  ],
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
    ${copied(`'series_id', s.id`)} from {rows} c join market.series s on s.coin_id like 'invented-%' where c.series_id = :B`,
    [],
  ],
  [
    'an invented series with its candles, its counts and its digest',
    `insert into market.series (coin_id, quote, interval, covered, covered_candles, candles, digest) select coin_id, 'btc', interval, covered, covered_candles, candles, digest from market.series where id = :B; ${copied(`'series_id', (select max(id) from market.series)`)} from {rows} c where series_id = :B`,
    [],
  ],
  ['candles of no series', `update {rows} set series_id = 999 where ${of('B', 7)}`, [7]],
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
    'sums of evidence that name a slot beyond all time',
    `update market.evidence set digest = ops.modulo_2_64(digest::numeric - 1), locator = ops.modulo_2_64(locator::numeric - 1099511627776) where series_id = :A and number = 1`,
    [],
  ],
  [
    'sums of evidence that name a slot of another step',
    `update market.evidence set digest = ops.modulo_2_64(digest::numeric - 1), locator = ops.modulo_2_64(locator::numeric - (extract(epoch from ${day(50)}) / 86400)) where series_id = :A and number = 1`,
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
    `insert into market.evidence (series_id, number, kind, slots, as_of, known_at, candles, digest, locator, link) select id, steps + 1, 'retention', tstzmultirange(tstzrange(${day(0)}, ${day(30)})), now(), now(), 30, 0, 0, link from market.series where id = :A; update market.series set steps = steps + 1, covered = covered - tstzmultirange(tstzrange(${day(0)}, ${day(30)})) where id = :A; delete from {rows} where series_id = :A and {time} < ${day(30)}`,
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
  ['−0 for 0', `update {rows} set {volume} = '-0' where ${of('A', 33)}`, [33]],
  ['null for a number', `update {rows} set {market_cap} = null where ${of('A', 34)}`, [34]],
  ['the digest of the series', 'update market.series set digest = digest # 1 where id = :A', []],
  ['the count of the series', 'update market.series set candles = candles + 1 where id = :A', []],
  ['the volume of one row', `update {rows} set {volume} = {volume} + 1 where ${of('A', 50)}`, [50]],
  [
    'one bit of a market cap',
    `update {rows} set {market_cap} = {market_cap} + 2e-16 * {market_cap} where ${of('A', 50)}`,
    [50],
  ],
  ['a negative price', `update {rows} set {close} = -{close} where ${of('A', 50)}`, [50]],
  ['an infinite price', `update {rows} set {close} = 'infinity' where ${of('A', 50)}`, [50]],
  ['a price that is no number', `update {rows} set {close} = 'NaN' where ${of('A', 50)}`, [50]],
  [
    'a negative volume outside coverage',
    `${copied(`'{time}', c.{time} + interval '5 days', '{volume}', -1`)} from {rows} c where ${of('A', 735)}`,
    [740],
  ],
  ['a row off the grid', `update {rows} set {time} = {time} + interval '90 seconds' where ${of('A', 50)}`, [50]],
  [
    'a row off the grid by a microsecond',
    `${copied(`'{time}', c.{time} + interval '1 microsecond'`)} from {rows} c where ${of('A', 50)}`,
    [50],
  ],
  [
    'a row from the future',
    `${copied(`'{time}', c.{time} + interval '10000 days'`)} from {rows} c where ${of('A', 50)}`,
    [10_050],
  ],
  [
    'a revision at a time that no date of JavaScript has',
    `update market.revision set open_time = '290000-01-01Z' where ${ofRevision('A', 371)}`,
    [],
  ],
  [
    'a revision of a slot that nobody asked about',
    `update market.revision set open_time = '2010-01-01Z' where ${ofRevision('A', 371)}`,
    [],
  ],
  [
    'a row of evidence of no steps, about an empty slot',
    `update market.series set steps = steps + 1, link = ops.add_evidence(id, 'answer', '{[2010-01-01Z,2010-01-02Z)}', now(), now(), 0, 0, 0) where id = :B;
    update market.evidence set step_seconds = '{}' where series_id = :B and candles = 0`,
    [],
  ],
  ...['step 99999999999 told 1', 'step 2 told 9'].map(
    (step) =>
      [
        `what a repair found: ${step} …`,
        `update market.evidence set detail = 'what was found differs from what was told: ${step} candles (digest 0), found were 1 (digest 1), the slot 2023-99-20 00:00:00Z differs'
        where series_id = :A and kind = 'mended'`,
        [],
      ] as const,
  ),
  [
    'requests of two steps swapped',
    `update market.evidence e set fetch_id = o.fetch_id, body_sha256 = o.body_sha256, as_of = o.as_of from market.evidence o
      where e.series_id = :A and o.series_id = :A and (e.number, o.number) in ((1, 2), (2, 1))`,
    [],
  ],
  ['all evidence of a series', 'delete from market.evidence where series_id = :A', []],
];

/** The slowest ones run in the deep tests: one invented series is found like thirty. */
export const OF_MANY = TABLE.filter(([name]) => name.startsWith('thirty'));
export const OF_CANDLES = TABLE.filter((row) => !OF_MANY.includes(row));

/**
 * Damage to the rows themselves, which runs for prices too. The rest runs in the deep tests, because the tables beside the rows are the
 * same for both.
 */
const ROWS = /price|row|−0|null|volume|all evidence|invented series|swapped/;
export const OF_PRICES = OF_CANDLES.filter(([name]) => ROWS.test(name));
export const OF_PRICES_BESIDE = OF_CANDLES.filter(([name]) => !ROWS.test(name));

/** Times that no slot has, as Postgres prints them. */
export const IMPOSSIBLE_TIMES = [
  'infinity',
  '-infinity',
  '0044-03-15 00:00:00+00 BC',
  '10001-01-01 00:00:00+00',
  '290000-01-01 00:00:00+00',
];

/** Partitions of candles for these times. */
export const WITHOUT_BOUNDS = `create table market.candle_24h_before partition of market.candle_24h for values from (minvalue) to ('1900-01-01Z');
  create table market.candle_24h_after partition of market.candle_24h for values from ('9000-01-01Z') to (maxvalue)`;

/** Row 50 of A once more, at another time. */
export const rowAt = (time: string) => `${copied(`'{time}', '${time}'`)} from {rows} c where ${of('A', 50)}`;

/** Rows that are in the wrong table for their series. */
export const ASTRAY: typeof TABLE = [
  [
    'prices of a series of candles',
    `insert into market.series (coin_id, quote, interval) values ('coin-0', 'usd', '24h');
     ${copied(`'series_id', (select max(id) from market.series)`)} from {rows} c where ${of('A', 50)}`,
    [],
  ],
  [
    'candles of a series of prices',
    `insert into market.candle select time, price, price, price, price, volume_24h, market_cap, series_id, '24h' from market.price where ${of('A', 50)}`,
    [],
  ],
];
