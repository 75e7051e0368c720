/** Instants mean the same whatever time zone a session has: in functions, in views, and for logins and databases that we set up. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { rollUp } from '../../../src/store/candle/rollup.ts';
import { createClient, type Sql } from '../../../src/store/connection/connect.ts';
import { migrate } from '../../../src/store/migration/migrate.ts';
import { ensurePartitionsOf, TICKER_HISTORY } from '../../../src/store/upkeep/partition.ts';
import { analystIn, NEW_YORK } from '../../support/analyst.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type CandleValues, givenSeries, storeAnswer } from '../../support/given-candles.ts';

const FROM = Date.UTC(2024, 1, 1);
const TO = FROM + 60 * DAY;
const ALL = { from: FROM, to: TO };

let database: TestDatabase;
const sessions: Sql[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  const { sql } = database;
  for (const coinId of ['aaa-coin', 'btc-bitcoin']) {
    const hours = await givenSeries(sql, { coinId, interval: '1h', span: ALL });
    const slots = Array.from({ length: 60 * 24 }, (_, i): CandleValues => [i + 1, i + 2, i + 0.5, i]);
    await storeAnswer(sql, hours, { span: ALL, slots });
  }
  await ensurePartitionsOf(sql, TICKER_HISTORY, ALL);
  await sql`
    insert into market.ticker_history (coin_id, at, updated_at, price, market_cap, rank)
    select 'aaa-coin', t, t, 1, 2, 1 from generate_series(${FROM}::timestamptz, ${TO - DAY}::timestamptz, interval '7 hours') t`;
  await rollUp(sql);
  for (const zone of ['UTC', NEW_YORK, 'Asia/Kolkata']) sessions.push(await analystIn(database, zone));
  // It prints instants with the abbreviation of its zone, which Israel uses as well.
  await sessions[2]!.unsafe("set datestyle = 'German, DMY'");
});
afterAll(async () => {
  await Promise.all(sessions.map((session) => session.end()));
  await database?.drop();
});

/** Rows as JSON in which instants are seconds. */
async function answers(call: string): Promise<string[]> {
  const found: string[] = [];
  for (const session of sessions) {
    await session`select set_config('timezone', current_setting('timezone'), false)`;
    const rows = await session.unsafe(
      `with answer as (select * from ${call})
       select (select jsonb_object_agg(key, case when jsonb_typeof(value) = 'string' and value #>> '{}' ~ '^\\d{4}-\\d\\d-\\d\\dT'
           then to_jsonb(extract(epoch from (value #>> '{}')::timestamptz)) else value end) from jsonb_each(to_jsonb(a)))::text as row from answer a`,
    );
    found.push(rows.map(({ row }) => row).join('\n'));
  }
  return found;
}

const DAYS = [
  "'2024-03-05'",
  "date '2024-03-05'",
  "timestamp '2024-03-05'",
  "market.utc('2024-03-05')",
  "'2024-03-04 19:00-05'",
];
const ENDS = ["'2024-03-15'", "date '2024-03-15'", "timestamp '2024-03-15'", "market.utc('2024-03-15')"];

describe('functions return the same in every time zone, whatever type their instants have:', () => {
  test.each([
    ['ohlcv', (from: string, to: string) => `market.ohlcv('AAA', '1 day', ${from}, ${to})`, 10],
    ['ohlcv_closed', (from: string, to: string) => `market.ohlcv_closed('AAA', '1 day', ${from}, ${to})`, 10],
    ['returns', (from: string, to: string) => `market.returns('AAA', '6 hours', ${from}, ${to})`, 40],
    ['on_grid', (from: string, to: string) => `market.on_grid('AAA', '12 hours', ${from}, ${to})`, 20],
    ['in_quote', (from: string, to: string) => `market.in_quote('AAA', 'BTC', '1 day', ${from}, ${to})`, 10],
    ['vwap', (from: string, to: string) => `market.vwap('AAA', ${from}, ${to})`, 1],
    ['twap', (from: string, to: string) => `market.twap('AAA', ${from}, ${to})`, 1],
    ['realized_volatility', (from: string, to: string) => `market.realized_volatility('AAA', ${from}, ${to})`, 1],
    ['max_drawdown', (from: string, to: string) => `market.max_drawdown('AAA', ${from}, ${to})`, 1],
    ['correlation', (from: string, to: string) => `market.correlation('AAA', 'BTC', ${from}, ${to})`, 1],
    ['prices_sampled', (from: string, to: string) => `market.prices_sampled('AAA', '1 day', ${from}, ${to})`, 10],
  ])('market.%s', async (_, call, rows) => {
    const all: string[] = [];
    for (const from of DAYS) for (const to of ENDS) all.push(...(await answers(call(from, to))));
    expect(new Set(all).size).toBe(1);
    expect(all[0]!.split('\n')).toHaveLength(rows);
    expect(all[0]).not.toBe('');
  });

  test.each([
    ['price_at', (at: string) => `market.price_at('AAA', ${at})`],
    ['universe', (at: string) => `market.universe(${at}, 5)`],
    ['event_study', (at: string) => `market.event_study('AAA', ${at}, 1, 1)`],
    ['story', (at: string) => `market.story('AAA', '1h', ${at}) where event <> 'now'`],
    ['candles_as_known', (at: string) => `market.candles_as_known(${at})`],
    ['prices_as_known', (at: string) => `market.prices_as_known(${at})`],
    ['slot_of', (at: string) => `market.slot_of('1 week', ${at})`],
    ['slot_end', (at: string) => `market.slot_end('1 week', ${at})`],
  ])('market.%s', async (_, call) => {
    const all: string[] = [];
    for (const at of DAYS) all.push(...(await answers(call(at))));
    expect(new Set(all).size).toBe(1);
  });

  test('a null instant has no story', async () => {
    for (const kind of ['timestamptz', 'timestamp', 'date', 'text'])
      expect(await answers(`market.story('AAA', '1h', null::${kind})`)).toEqual(sessions.map(() => ''));
  });

  test('market.condition, whose days are UTC days', async () => {
    const [first, ...others] = await answers("market.condition('AAA', '1h', '2024-03-10')");
    expect(first).toContain('"slots": 24');
    expect(new Set(others)).toEqual(new Set([first]));
  });

  test('a text without a zone is in UTC, and an ambiguous one is an error', async () => {
    const [, newYork] = sessions;
    const read = async (text: string) => {
      const [row] = await newYork!<
        { at: number }[]
      >`select extract(epoch from market.utc(${text}))::float8 * 1000 as at`;
      return row!.at;
    };
    expect(await read('2024-06-30')).toBe(Date.UTC(2024, 5, 30));
    expect(await read('2024-06-30 12:00')).toBe(Date.UTC(2024, 5, 30, 12));
    expect(await read('2024-06-30T12:00:00.5')).toBe(Date.UTC(2024, 5, 30, 12) + 500);
    expect(await read('2024-06-30 12:00-04')).toBe(Date.UTC(2024, 5, 30, 16));
    expect(await read('2024-06-30 12:00 America/New_York')).toBe(Date.UTC(2024, 5, 30, 16));
    expect(await read('2024-06-30T12:00Z')).toBe(Date.UTC(2024, 5, 30, 12));
    await expect(read('06/07/2024')).rejects.toThrow(/date\/time field value out of range|invalid/);
    const [zone] = await newYork!`select current_setting('TimeZone') as zone`;
    expect(zone).toEqual({ zone: NEW_YORK });
  });
});

test('views return the same instants in every time zone, and widths are hours', async () => {
  for (const view of ['candles', 'latest']) {
    const found = await answers(`market.${view} where coin_id = 'aaa-coin'`);
    expect(new Set(found).size, view).toBe(1);
    expect(found[0], view).toContain('aaa-coin');
  }
  // In New York, clocks went forward on the 10th of March: that day had 23 hours there.
  const closes = await answers(
    "market.candles where coin_id = 'aaa-coin' and interval = '24h' and open_time = market.utc('2024-03-10')",
  );
  const { open_time: opens, close_time: ends } = JSON.parse(closes[1]!) as Record<string, number>;
  expect(ends! - opens!).toBe(DAY / 1000 - 1);
});

describe('the zone of a database', () => {
  let other: TestDatabase | undefined;
  afterEach(async () => {
    await other?.drop();
    other = undefined;
  });
  const zoneOf = async ({ url }: TestDatabase) => {
    const sql = createClient({ url, max: 1, timeZone: 'of the server' });
    const [row] = await sql<{ zone: string }[]>`select current_setting('TimeZone') as zone`;
    await sql.end();
    return row!.zone;
  };
  const named = async (sql: Sql) => {
    const [row] = await sql<{ name: string }[]>`select quote_ident(current_database()) as name`;
    return row!.name;
  };
  const settings = (sql: Sql) => sql`
    select unnest(setconfig) as setting from pg_db_role_setting
    where setrole = 0 and setdatabase = (select oid from pg_database where datname = current_database())`;

  test('is UTC after a migrate, if the database is ours', async () => {
    other = await createEmptyDatabase();
    expect(await settings(other.sql)).toHaveLength(0);
    await migrate(other);
    expect((await settings(other.sql)).map(({ setting }) => setting)).toEqual(['TimeZone=UTC']);
    expect(await zoneOf(other)).toBe('UTC');
  });

  test('stays as somebody set it, and stays in a database that has tables of others', async () => {
    other = await createEmptyDatabase();
    const name = await named(other.sql);
    await other.sql.unsafe('create table public.theirs (x int)');
    await migrate(other);
    expect(await settings(other.sql)).toHaveLength(0);
    await other.sql.unsafe(`drop table public.theirs; alter database ${name} set timezone to 'America/New_York'`);
    await migrate(other);
    expect(await zoneOf(other)).toBe(NEW_YORK);
  });

  test('causes a warning of chandler doctor if it is not UTC', async () => {
    const name = await named(database.sql);
    const check = async () => {
      const { out } = await runCommand(['doctor', '--json'], { env: { DATABASE_URL: database.url } });
      return (JSON.parse(out) as { name: string; state: string; found: string; fix?: string }[]).find(
        (one) => one.name === 'time zone',
      );
    };
    await database.sql.unsafe(`alter database ${name} set timezone to 'Europe/London'`);
    expect(await check()).toEqual({
      name: 'time zone',
      state: 'warn',
      found: 'sessions on this database start in Europe/London: a date in a statement means a day there, not in UTC',
      fix: `as the owner of the database: alter database "${name}" set timezone to 'UTC'; or in a session: set timezone to 'UTC'`,
    });
    await database.sql.unsafe(`alter database ${name} set timezone to 'Africa/Abidjan'`);
    expect(await check()).toEqual({
      name: 'time zone',
      state: 'ok',
      found: 'sessions on this database start in Africa/Abidjan',
    });
    await database.sql.unsafe(`alter database ${name} reset timezone`);
  });
});
