/** Invented candles made ahead of time, and invented coverage of them: verify finds them, and still checks everything else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCalendar } from '../../../src/store/candle/calendar-candle.ts';
import type { Sql } from '../../../src/store/connection/connect.ts';
import { verifyWarehouse } from '../../../src/views/verify/warehouse.ts';
import type { TestDatabase } from '../../support/database.ts';
import { addRolledUp, createWarehouse, verifiedAfter } from './tampering.ts';

let database: TestDatabase;
let fine = 0;
beforeAll(async () => {
  ({ database } = await createWarehouse());
  fine = await addRolledUp(database);
  await makeCalendar(database.sql, { isOver: () => false });
});
afterAll(() => database.drop());

const found = async (damage: string) => (await verifiedAfter(database, damage.replaceAll(':F', `${fine}`))).all;
const copied = (table: string, change: string, where: string) =>
  `insert into ${table} select (jsonb_populate_record(null::${table}, to_jsonb(r) || jsonb_build_object(${change}))).* from (select * from ${table} where ${where} limit 1) r`;
const rollup = (time: string) =>
  copied('market.rollup', `'open_time', '${time}'`, `series_id = :F and interval = '6h'`);
const month = (time: string) => copied('market.calendar_candle', `'open_time', '${time}'`, `period = 'month'`);

test('verify finds no difference in an untouched warehouse', async () => {
  expect(await found('select 1')).toEqual([]);
});

test.each(['infinity', '-infinity', '0044-03-15 00:00:00+00 BC', '290000-01-01 00:00:00+00'])(
  'verify names and can remove rows at %s, and still checks everything else',
  async (time) => {
    // Everything else is compared.
    const elsewhere = `update market.rollup set close = close * 1.001 where series_id = :F and interval = '12h' and open_time = '2023-01-02Z';
    update market.calendar_candle set close = close * 1.001 where period = 'week' and open_time = '2023-01-09Z' and coin_id = 'coin-0'`;
    const statement =
      "delete from [a-z_.]+ where \\(open_time < '0001-01-01 00:00:00Z' or open_time >= '10000-01-01 00:00:00Z'\\)$";
    const named = (table: string) =>
      expect.stringMatching(
        new RegExp(
          `^${table}: 1 row at a time that no slot can have \\(${time.replace('+', '\\+')}\\); .*: ${statement}`,
        ),
      );
    const everywhere = `update market.rollup_coverage set spans = spans + '{(,)}' where series_id = :F and interval = '6h'`;
    for (const more of ['select 1', everywhere]) {
      const all = await found([rollup(time), month(time), elsewhere, more].join(';'));
      expect(all).toEqual(
        expect.arrayContaining([
          named('market.rollup'),
          named('market.calendar_candle'),
          expect.stringMatching(
            /^market.rollup: the 12h candle of 2023-01-02T00:00:00.000Z .* does not match its 1h candles$/,
          ),
          expect.stringMatching(/^market.calendar_candle: the week of 2023-01-09T00:00:00.000Z of coin-0 /),
        ]),
      );
    }
  },
);

test.each(['market.rollup_coverage', 'market.rollup_coverage of a series that is covered as long'])(
  'verify takes no longer for centuries of %s than for what is stored',
  async (of) => {
    const spans = `'{[2024-07-02Z,9999-01-01Z)}'`;
    const covered = of.includes('of a series')
      ? `update market.series set covered = covered + ${spans} where id = :F`
      : 'select 1';
    // Slot by slot, the test would not end.
    const all = await found(
      `update market.rollup_coverage set spans = spans + ${spans} where series_id = :F; ${covered}`,
    );
    expect(all).not.toEqual([]);
    if (covered === 'select 1')
      expect(all).toEqual(
        ['6h', '12h', '24h'].map((interval) =>
          expect.stringMatching(
            new RegExp(
              `^market.rollup_coverage: ${interval} of series ${fine} has \\["?2024-07-02 .*, which its own candles do not cover`,
            ),
          ),
        ),
      );
  },
);

test('verify finds coverage of weeks and months whose days are missing', async () => {
  const invented = `insert into market.calendar_coverage (coin_id, quote, period, spans) values ('coin-0', 'btc', 'month', '{[2024-03-01Z,2024-04-01Z)}');
    update market.calendar_coverage set spans = spans + '{[2027-01-04Z,2027-01-11Z)}' where coin_id = 'coin-0' and quote = 'usd' and period = 'week'`;
  expect(await found(invented)).toEqual([
    expect.stringMatching(
      /^market.calendar_coverage: the weeks of coin-0 in usd have \["2027-01-04 .*, but not all days there are final$/,
    ),
    expect.stringMatching(
      /^market.calendar_coverage: the months of coin-0 in btc have \["2024-03-01 .*, but not all days there are final$/,
    ),
  ]);
});

test.each(['5m', '1h', 'prices-1d'])('verify finds candles of %s that claim to be made of hours', async (interval) => {
  const made = `insert into market.rollup_coverage select series_id, spans, '${interval}' from market.rollup_coverage where series_id = :F and interval = '6h';
    ${copied('market.rollup', `'interval', '${interval}'`, `series_id = :F and interval = '6h' and open_time = '2023-01-05Z'`)}`;
  expect(await found(made)).toEqual(
    expect.arrayContaining([
      `market.rollup: the ${interval} candle of 2023-01-05T00:00:00.000Z of series ${fine} should not be there`,
      `market.rollup_coverage: series ${fine} has 1h candles, and Chandler does not aggregate these into ${interval}`,
    ]),
  );
});

test('verify finds coverage of a series that does not exist', async () => {
  expect(await found(`insert into market.rollup_coverage values (999, '{[2023-01-01Z,2023-01-02Z)}', '24h')`)).toEqual([
    'market.rollup_coverage: 1 rows of series 999, which does not exist',
  ]);
});

const DAY_ROLLUP = `series_id = :F and interval = '24h' and open_time = '2023-01-05Z'`;
const WEEK = `coin_id = 'coin-0' and period = 'week' and open_time = '2023-01-09Z'`;
test.each([
  ['a rollup', `update market.rollup set close = close * 1.01 where ${DAY_ROLLUP}`],
  ['a rollup that is gone', `delete from market.rollup where ${DAY_ROLLUP}`],
  ['a rollup of no series', `update market.rollup set series_id = 999 where ${DAY_ROLLUP}`],
  ['what has its rollups', 'delete from market.rollup_coverage where series_id = :F'],
  ['a week', `update market.calendar_candle set slots = slots + 1 where ${WEEK}`],
  ['a week of another coin', `update market.calendar_candle set coin_id = 'nobody' where ${WEEK}`],
  ['which weeks are made', `delete from market.calendar_coverage where coin_id = 'coin-0'`],
  [
    'evidence of no series',
    "insert into market.evidence select (jsonb_populate_record(e, jsonb_build_object('series_id', 999))).* from market.evidence e where series_id = :F",
  ],
  [
    'candles of no series',
    `update market.candle set series_id = 999 where series_id = :F and open_time = '2023-01-05Z'`,
  ],
  [
    'a claim that is never asked again',
    `insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at) values (:F, tstzrange('2020-01-01Z', '2020-01-02Z'), 'provisional', 1, now(), 'infinity')`,
  ],
])('verify offers statements that end a difference outside the series: %s', async (_, damage) => {
  const { others, unmended, left } = await verifiedAfter(database, damage.replaceAll(':F', `${fine}`));
  expect(others).not.toEqual([]);
  expect([...unmended, ...left]).toEqual([]);
});

test('the statements remove only what is wrong, also if the series is there again', async () => {
  const { sql } = database;
  const offered = async (damage: string, after = '') => {
    const counts: { candles: number; claims: number }[] = [];
    const undo = new Error('undone');
    const statements = new Set<string>();
    await sql
      .begin(async (tx) => {
        const count = async () =>
          counts.push(
            ...(await tx<typeof counts>`
              select (select count(*) from market.candle) as candles, (select count(*) from ops.second_opinion) as claims`),
          );
        await tx.unsafe(`set local session_replication_role = replica; ${damage}`.replaceAll(':F', `${fine}`));
        await count();
        await verifyWarehouse(tx as unknown as Sql, (statement) => statements.add(statement));
        await tx.unsafe(after.replaceAll(':F', `${fine}`));
        for (const statement of statements) await tx.unsafe(statement);
        await count();
        throw undo;
      })
      .catch((error) => {
        if (error !== undo) throw error;
      });
    const [before, left] = counts as [(typeof counts)[0], (typeof counts)[0]];
    return {
      statements: [...statements],
      removed: { candles: before.candles - left.candles, claims: before.claims - left.claims },
    };
  };
  const nothing = { candles: 0, claims: 0 };
  const gone = await offered(
    'create temp table gone on commit drop as select * from market.series where id = :F; delete from market.series where id = :F',
    'insert into market.series overriding system value select * from gone',
  );
  expect(gone.statements.join()).toContain(`delete from market.candle r where series_id = ${fine} `);
  expect(gone.removed).toEqual(nothing);
  const wider = await offered(`update market.series set interval = '6h' where id = :F`);
  expect(wider.statements.join()).not.toContain('market.candle ');
  expect(wider.removed).toEqual(nothing);
  const claim = (day: number, retry: string) =>
    `insert into ops.second_opinion (series_id, span, claim, answers, requested_at, retry_at) values (:F, tstzrange('2020-01-0${day}Z', '2020-01-0${day + 1}Z'), 'provisional', 1, now(), ${retry})`;
  const claims = await offered([claim(1, 'now()'), claim(2, "'infinity'"), claim(3, "now() + '90 days'")].join(';'));
  expect(claims.removed).toEqual({ candles: 0, claims: 2 });
});
