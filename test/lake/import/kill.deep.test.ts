/** An import that is killed (kill -9) at any row stores nothing, and does not block the storing of answers. */
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { fillRecorded } from '../../bench/export-warehouse.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenSeries, storeAnswer } from '../../support/given-candles.ts';
import { runCli, startCli } from '../../support/program.ts';
import { randomOf } from '../../support/random.ts';
import { temporaryFolder } from '../format/rows.ts';

const ROWS = 400_000;
let database: TestDatabase;
let folder: string;
let remove: () => void;
let file: string;
/** Rows in the file. */
let rows: number;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillRecorded(database.sql, ROWS, { withCaps: true, isPossible: true });
  const [stored] = await database.sql<[{ rows: number }]>`select count(*) as rows from market.candle`;
  rows = Number(stored.rows);
  ({ folder, remove } = temporaryFolder());
  const out = path.join(folder, 'files');
  const argv = ['export', '--what', 'candles', '--layout', 'single', '--out', out];
  expect((await runCli(argv, { DATABASE_URL: database.url })).code).toBe(0);
  file = path.join(out, 'candles.parquet');
});
afterAll(async () => {
  remove?.();
  await database?.drop();
});
beforeEach(async () => {
  await database.sql`truncate market.imported_candle, market.imported_series`;
});

const start = () => startCli(['import', file, '--source', 'twin', '--json'], { DATABASE_URL: database.url });
const counts = () => database.sql`
  select (select count(*) from market.imported_series) as series, (select count(*) from market.imported_candle) as candles`;

/** Stops the next import at this row of its COPY, counted from 1. */
async function stopAtRow(row: number) {
  const { sql } = database;
  await sql`
    create function public.stop_import() returns trigger language plpgsql as $$
      begin
        if nextval('public.imported_row') = (select row from public.stopped_row) then perform pg_advisory_xact_lock(1); end if;
        return new;
      end $$`;
  await sql`create sequence public.imported_row`;
  await sql`create table public.stopped_row as select ${row}::integer as row`;
  const holder = await sql.reserve();
  await holder`select pg_advisory_lock(1)`;
  await sql`
    create trigger stop_import before insert on market.imported_candle for each row execute function public.stop_import()`;
  return {
    reached: () =>
      vi.waitUntil(
        async () => (await sql`select from pg_locks where locktype = 'advisory' and not granted`).length > 0,
        60_000,
      ),
    goOn: async () => {
      await holder`select pg_advisory_unlock(1)`;
      holder.release();
      // Waits until the transaction of the import has ended.
      await sql`drop trigger stop_import on market.imported_candle`;
      await sql`drop function public.stop_import()`;
      await sql`drop table public.stopped_row`;
      await sql`drop sequence public.imported_row`;
    },
  };
}

test('a kill at any row changes nothing; the next import succeeds, and repeating it changes nothing', async () => {
  const random = randomOf(11);
  for (const at of [1, random(), random(), rows]) {
    const stop = await stopAtRow(at < 1 ? 1 + Math.floor(at * rows) : at);
    const running = await start();
    await stop.reached();
    running.process.kill('SIGKILL');
    expect((await running.ended).signal).toBe('SIGKILL');
    await stop.goOn();
    expect(await counts()).toEqual([{ series: 0, candles: 0 }]);
  }
  const { out, err } = await (await start()).ended;
  expect(err).toBe('');
  const { added, series } = JSON.parse(out);
  expect(added).toBeGreaterThan(ROWS / 2);
  expect(await counts()).toEqual([{ series: series.length, candles: added }]);
  const digests = await database.sql`select coin_id, candles, digest::text from market.imported_series order by 1`;
  expect(digests).toEqual(
    await database.sql`
      select s.coin_id, count(*) as candles,
        (select case when d >= 9223372036854775808 then d - 18446744073709551616 else d end from (select mod(mod(sum(market.candle_hash(
          c.open_time, c.open, c.high, c.low, c.close, c.volume, c.market_cap)::numeric), 18446744073709551616) + 18446744073709551616, 18446744073709551616) as d) m)::text as digest
      from market.series s join market.candle c on c.series_id = s.id group by 1 order by 1`,
  );
});

test('an interrupted import says so and has stored nothing', async () => {
  const stop = await stopAtRow(10_000);
  const running = await start();
  await stop.reached();
  running.process.kill('SIGINT');
  await stop.goOn();
  expect((await running.ended).code).toBe(130);
  expect(await counts()).toEqual([{ series: 0, candles: 0 }]);
});

test('answers are stored while an import runs, even about its coins; a second import is refused', async () => {
  const { sql } = database;
  const [coin] = await sql<{ id: string }[]>`select id from market.coin order by id limit 1`;
  const span = { from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 0, 2) };
  const stop = await stopAtRow(10_000);
  const running = await start();
  await stop.reached();
  const [second, stored] = await Promise.all([
    runCli(['import', file, '--source', 'other'], { DATABASE_URL: database.url }),
    (async () => {
      // Stores a new coin, a series of it and an answer.
      const series = await givenSeries(sql, { coinId: coin!.id, interval: '6h', span });
      await storeAnswer(sql, series, { span, slots: Array.from({ length: 4 }, () => [1, 2, 1, 1] as const) });
      // The import itself waits for this test.
      return sql`select count(*) as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and application_name <> 'chandler import'`;
    })(),
  ]);
  expect(stored).toEqual([{ waiting: 0 }]);
  expect(await counts()).toEqual([{ series: 0, candles: 0 }]);
  expect([second.code, second.err]).toEqual([2, 'error: another import is running; wait until it has ended.\n']);
  await stop.goOn();
  const { code } = await running.ended;
  expect(code).toBe(0);
  const [{ hours }] = await sql<[{ hours: number }]>`
    select count(*) as hours from market.candles where coin_id = ${coin!.id} and interval = '6h' and open_time >= ${span.from}::timestamptz
      and open_time < ${span.to}::timestamptz`;
  expect(hours).toBe(4);
  const verified = await runCli(['verify'], { DATABASE_URL: database.url });
  expect([verified.code, verified.code === 0 ? '' : verified.out.slice(-1_500)]).toEqual([0, '']);
});
