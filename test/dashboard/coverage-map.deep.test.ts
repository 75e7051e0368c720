/**
 * The coverage map of 50,000 series reads each of them only when their order is not known. It reads no candles, except of rows with slots
 * that two answers reported as empty, and of these no more than its limit. The tests count the rows that Postgres read, not the time.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { COVERAGE_SORTS } from '../../src/views/dashboard/coverage-order.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { type CoveragePages, openCoveragePages } from './coverage-world.ts';

const COINS = Math.ceil(50_000 / SERIES_OF_A_COIN);
const SERIES = COINS * SERIES_OF_A_COIN;
const ROWS = 100;
const WINDOW = { from: '2016-01-01', to: '2026-01-01', step: 86_400 };

let database: TestDatabase;
let pages: CoveragePages;
beforeAll(async () => {
  database = await createTestDatabase({ max: 1 });
  await makeManySeries(database.sql, { coins: COINS, requests: 100 });
  pages = openCoveragePages(database.sql);
});
afterAll(() => database?.drop());

type Read = { readonly series: number; readonly candles: number; readonly opinions: number };

/** Rows read from tables so far. An index look-up counts the rows that it found. */
async function readRows(): Promise<Read> {
  const { sql } = database;
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<Read[]>`
    select sum(n) filter (where relname = 'series')::float8 as series, sum(n) filter (where relname = 'second_opinion')::float8 as opinions,
      sum(n) filter (where relname ~ '^(candle|price|evidence|open_candle)')::float8 as candles
    from (
      select relname, seq_tup_read as n from pg_stat_user_tables
      union all
      select relname, idx_tup_read from pg_stat_user_indexes
    ) t`;
  return row!;
}

async function readBy(ask: () => Promise<unknown>): Promise<Read> {
  const before = await readRows();
  await ask();
  const after = await readRows();
  return {
    series: after.series - before.series,
    candles: after.candles - before.candles,
    opinions: after.opinions - before.opinions,
  };
}

it.each(COVERAGE_SORTS)('sorted by %s, the map reads each series once for all pages', async (sort) => {
  const data = (row: number) => pages.data({ ...WINDOW, sort, row, rows: ROWS });
  let total = 0;
  const first = await readBy(async () => {
    total = (await data(0)).total;
  });
  expect(total).toBe(SERIES);
  // Every series once for the order, and the rows of the page a few more times.
  expect(first.series).toBeGreaterThanOrEqual(SERIES);
  expect(first.series).toBeLessThan(SERIES + 10 * ROWS);
  for (const row of [ROWS, 25_000, SERIES - ROWS]) {
    const next = await readBy(() => data(row));
    expect(next.series).toBeGreaterThanOrEqual(ROWS);
    expect(next.series).toBeLessThan(10 * ROWS);
    expect(next.opinions).toBeLessThan(10 * ROWS);
    expect(next.candles).toBe(0);
  }
  // The page and its map share the list.
  const page = await readBy(() => pages.get(`/ui/coverage?sort=${sort}&row=30000`));
  expect(page.series).toBeGreaterThan(0);
  expect(page.series).toBeLessThan(10 * ROWS);
  expect(page.candles).toBe(0);
});

it('filtered by a reason, the map reads each series and each waiting answer once, and no candle', async () => {
  const query = { ...WINDOW, reason: 'unconfirmed', rows: ROWS };
  const first = await readBy(() => pages.data(query));
  const [{ waiting }] = (await database.sql`select count(*) as waiting from ops.second_opinion`) as [
    { waiting: number },
  ];
  expect(first.series).toBeLessThan(SERIES + 10 * ROWS);
  expect(first.opinions).toBeLessThan(waiting + 10 * ROWS);
  expect(first.candles).toBe(0);
  expect((await readBy(() => pages.data(query))).series).toBeLessThan(10 * ROWS);
});

it('the data of a row has at most two stretches for each pixel of the map, whatever the series is like', async () => {
  const { sql } = database;
  // Every second slot of ten years is missing.
  const [{ id }] = (await sql`
    update market.series set wanted = tstzmultirange(tstzrange('2016-01-01', '2026-01-01')), covered = (
      select range_agg(tstzrange(at, at + interval '1 hour')) from generate_series(timestamptz '2016-01-01', '2025-12-31', interval '2 hours') at)
    where coin_id = 'c11-coin-11' and interval = '1h' and quote = 'usd' returning id`) as [{ id: number }];
  const pixels = 1_000;
  const seconds = (Date.parse(WINDOW.to) - Date.parse(WINDOW.from)) / 1000;
  const { rows } = await pages.data({
    ...WINDOW,
    step: Math.ceil(seconds / pixels),
    coin: 'c11-coin',
    interval: '1h',
    rows: ROWS,
  });
  const row = rows.find(({ seriesId }) => seriesId === id)!;
  expect(row.stretches.length / 3).toBeGreaterThan(0);
  expect(row.stretches.length / 3).toBeLessThanOrEqual(2 * pixels);
});

it('when all series have slots that two answers reported as empty, the map reads candles only up to its limit', async () => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: Date.parse('2020-01-01'), to: Date.parse('2026-01-01') });
  await sql`update market.series set covered = tstzmultirange(tstzrange('2020-01-01', '2026-01-01')), covered_candles = 2191
    where interval = '24h' and quote = 'usd' and id in (select id from market.series where interval = '24h' and quote = 'usd' order by id limit 100)`;
  await sql`insert into market.candle (series_id, interval, open_time, open, high, low, close)
    select id, interval, at, 1, 1, 1, 1
    from market.series, generate_series(timestamptz '2020-01-01', '2025-12-31', interval '1 day') at
    where covered_candles = 2191 and at <> '2023-05-05'`;
  const query = { ...WINDOW, interval: '24h', quote: 'usd', rows: ROWS };
  let unread = 0;
  const all = await readBy(async () => {
    unread = (await pages.data(query)).rows.filter(({ toldTwiceElsewhere }) => toldTwiceElsewhere === 1).length;
  });
  expect(all.candles).toBeGreaterThan(100_000);
  expect(all.candles).toBeLessThan(160_000);
  expect(unread).toBe(ROWS - Math.floor(150_000 / 2_192));
  // For fewer days all rows are read.
  const part = await readBy(() => pages.data({ ...query, from: '2023-05-01', to: '2023-06-01' }));
  expect(part.candles).toBeGreaterThanOrEqual(ROWS * 30);
  expect(part.candles).toBeLessThan(ROWS * 40);
});
