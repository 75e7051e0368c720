import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { DEFAULT_RETENTION, type Retention } from '../../../src/core/settings/retention-settings.ts';
import { noTickers, TICKER_NUMBERS, type TickerColumns } from '../../../src/core/ticker.ts';
import { backfillTotals } from '../../../src/store/backfill/backfill.ts';
import { changeBackfill, queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { createClient, openDatabase, type Sql } from '../../../src/store/connection/connect.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { writeTickers } from '../../../src/store/snapshot/ticker.ts';
import {
  ensurePartitions,
  ensurePartitionsAhead,
  ensurePartitionsOf,
  TICKER_HISTORY,
} from '../../../src/store/upkeep/partition.ts';
import { removeOld } from '../../../src/store/upkeep/retention.ts';
import { recordFetch } from '../../../src/store/work/fetch.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { coinNamed, day, FIRST_DAY, storeAnswer } from '../../support/stored-answers.ts';
import { until } from '../../support/until.ts';
import { seedSeries } from '../../support/warehouse.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

const NOW = Date.UTC(2026, 5, 15, 12);
const FOR_EVER: Retention = { ...DEFAULT_RETENTION, tickers: null, fetches: null };

async function partitionsOf(table: string): Promise<string[]> {
  const rows = await database.sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'market'::regnamespace and relkind = 'r' and relname like ${`${table}\\_%`} order by 1`;
  return rows.map((row) => row.name);
}

function tickersOf(ids: readonly string[]): TickerColumns {
  const columns = noTickers();
  for (const [i, id] of ids.entries()) {
    columns.coinId.push(id);
    columns.rank.push(i + 1);
    for (const name of ['updatedAt', 'athAt', 'firstDataAt'] as const) columns[name].push(Number.NaN);
    for (const name of TICKER_NUMBERS) columns.numbers[name].push(i + 0.5);
  }
  return columns;
}

/** One snapshot in each of the months before now. */
async function fillMonths(months: number): Promise<void> {
  const coin = {
    id: 'btc-bitcoin',
    name: 'Bitcoin',
    symbol: 'BTC',
    rank: 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  };
  await recordCoins(database.sql, [coin], 0);
  for (let i = months - 1; i >= 0; i--) await snapshotAt(Date.UTC(2026, 5 - i, 10));
}

async function snapshotAt(at: number, sql = database.sql): Promise<void> {
  await ensurePartitionsOf(sql, TICKER_HISTORY, { from: at, to: at + 1 });
  await writeTickers(sql, tickersOf(['btc-bitcoin']), at);
}

describe('partitions', () => {
  test('of tickers, and of candles wanted from now on, exist before they are needed', async () => {
    const span = { from: NOW - DAY, to: Number.POSITIVE_INFINITY };
    await seedSeries(database.sql, { coinId: 'a-a', interval: '5m', wanted: [span], covered: [], candles: [] });
    const past = { from: NOW - 2 * DAY, to: NOW - DAY };
    await seedSeries(database.sql, { coinId: 'a-b', interval: '1h', wanted: [past], covered: [], candles: [] });
    await ensurePartitionsAhead(database.sql, Date.UTC(2026, 5, 29));
    expect(await partitionsOf('ticker_history')).toEqual(['ticker_history_2026m06', 'ticker_history_2026m07']);
    expect(await partitionsOf('candle_5m')).toEqual(['candle_5m_2026m06', 'candle_5m_2026m07']);
    expect(await partitionsOf('candle_1h')).toEqual([]);
  });

  test('of tickers are dropped when all of their rows are older than the retention', async () => {
    await fillMonths(5);
    const removed = await removeOld(database, { keep: { ...FOR_EVER, tickers: 90 * DAY }, now: NOW });
    expect(removed).toMatchObject({ partitions: ['ticker_history_2026m02'], inUse: [] });
    // A part of March is younger than 90 days.
    expect(await partitionsOf('ticker_history')).toEqual([3, 4, 5, 6].map((m) => `ticker_history_2026m0${m}`));
    expect(await database.sql`select from market.ticker`).toHaveLength(1);
  });

  test('are dropped while others read and write: nobody waits, and readers of the old ones finish', async () => {
    await fillMonths(6);
    const others = await openDatabase({ url: database.url, max: 2 });
    const [reader, writer] = [1, 2].map(() => createClient({ url: database.url, max: 1 })) as [Sql, Sql];
    try {
      await reader`begin`;
      await reader`declare months cursor for select at from market.ticker_history order by at`;
      await reader`fetch 1 from months`;
      await writer`begin`;
      await writer`insert into market.ticker_history (at, updated_at, rank, coin_id) values (${'2026-06-11'}, ${'2026-06-11'}, 1, 'x')`;

      const removing = removeOld(database, { keep: { ...FOR_EVER, tickers: 90 * DAY }, now: NOW });
      await until(async () => (await half()) !== null);
      // It waits for those two. Meanwhile new sessions read and write at once, and make new partitions.
      await others.sql`set lock_timeout = '5s'`;
      await others.sql`select count(*) from market.ticker_history`;
      await snapshotAt(Date.UTC(2026, 5, 12), others.sql);
      await ensurePartitionsAhead(others.sql, Date.UTC(2026, 6, 1));
      expect(await reader`fetch all from months`).toHaveLength(5);
      await writer`commit`;
      await reader`commit`;
      expect((await removing).partitions).toEqual(['ticker_history_2026m01', 'ticker_history_2026m02']);
      expect((await database.sql`select count(*) from market.ticker_history`)[0]!.count).toBe(6);
    } finally {
      await Promise.all([reader.end(), writer.end(), others.close()]);
    }
  });

  test('that readers use for too long are left to the next run, also those of a run that was killed halfway', async () => {
    await fillMonths(6);
    // Detached and not dropped, as a kill in between leaves it.
    await database.sql.unsafe('alter table market.ticker_history detach partition market.ticker_history_2026m02');
    const others = await openDatabase({ url: database.url, max: 1 });
    const options = { keep: { ...FOR_EVER, tickers: 90 * DAY }, now: NOW };
    try {
      await others.sql.begin(async (tx) => {
        await tx`select count(*) from market.ticker_history`;
        const removed = await removeOld(database, { ...options, waitMs: 50 });
        expect(removed).toMatchObject({ partitions: [], inUse: ['ticker_history_2026m01'] });
        expect(await half()).toBe('ticker_history_2026m01');
        // A reader that still uses it sees no change.
        expect(await removeOld(database, { ...options, waitMs: 50 })).toMatchObject({ partitions: [] });
      });
      expect((await removeOld(database, options)).partitions).toEqual([
        'ticker_history_2026m01',
        'ticker_history_2026m02',
      ]);
      expect(await half()).toBeNull();
    } finally {
      await others.close();
    }
  });

  test('that were only detached are attached again when they are needed', async () => {
    await fillMonths(2);
    await database.sql.unsafe('alter table market.ticker_history detach partition market.ticker_history_2026m05');
    await snapshotAt(Date.UTC(2026, 4, 11));
    expect((await database.sql`select count(*) from market.ticker_history`)[0]!.count).toBe(3);
  });

  test('that are half detached are attached again when they are needed', async () => {
    const old = { from: Date.UTC(2019, 0, 1), to: Date.UTC(2020, 0, 1) };
    const needed = { from: old.from, to: old.from + DAY };
    await ensurePartitions(database.sql, '24h', old);
    const others = await openDatabase({ url: database.url, max: 1 });
    const keep = { ...FOR_EVER, candles: { ...FOR_EVER.candles, '24h': DAY } };
    await others.sql.begin(async (tx) => {
      await tx`select from market.candle_24h`;
      expect((await removeOld(database, { keep, now: NOW, waitMs: 200 })).inUse).toEqual(['candle_24h_2019']);
    });
    await others.close();
    const half = () => database.sql`select from pg_inherits where inhdetachpending`;
    expect(await half()).toHaveLength(1);
    await ensurePartitions(database.sql, '24h', needed);
    expect(await half()).toEqual([]);
    expect(
      await database.sql`select relname from pg_inherits join pg_class on oid = inhrelid where relname = 'candle_24h_2019'`,
    ).toHaveLength(1);
  });

  test('of candles are dropped together with their coverage: verify finds no difference, and no gap appears', async () => {
    const [from, to] = [Date.UTC(2025, 0, 1), Date.UTC(2026, 0, 1)];
    const candles = Array.from({ length: (to - from) / HOUR }, (_, i) => from + i * HOUR);
    const wanted = [{ from, to: Number.POSITIVE_INFINITY }];
    const id = await seedSeries(database.sql, {
      coinId: 'a-a',
      interval: '1h',
      wanted,
      covered: [{ from, to }],
      candles,
    });
    await database.sql`insert into ops.second_opinion (series_id, span, claim, requested_at, retry_at)
      values (${id}, '[2025-02-01,2025-02-02)', 'malformed', now(), now())`;
    const keep = { ...FOR_EVER, candles: { ...FOR_EVER.candles, '1h': 365 * DAY } };
    const before = await digestOf(id);
    const removed = await removeOld(database, { keep, now: NOW });
    expect(removed.partitions).toEqual(['candle_1h_2025q1']);
    const [series] = await database.sql`
      select lower(wanted) as from, covered_candles from market.series where id = ${id}`;
    expect(series).toEqual({ from: Date.parse('2025-04-01T00:00:00Z'), coveredCandles: 275 * 24 });
    expect(await database.sql`select from ops.second_opinion`).toHaveLength(0);
    // The evidence keeps how many candles were removed, and their digest.
    const after = await digestOf(id);
    const [gone] = await database.sql`
      select candles, digest::text, reason, open_time, upper(slots) as until, close from market.revisions where series_id = ${id}`;
    expect(gone).toEqual({
      candles: 90 * 24,
      digest: BigInt.asIntN(64, before - after).toString(),
      reason: 'retention',
      openTime: from,
      until: Date.UTC(2025, 3, 1),
      close: null,
    });
    expect(await database.sql`select from market.gaps where gap_from < '2026-01-01'`).toHaveLength(0);
    for await (const proof of verifySeries(database.sql, {}, NOW)) expect(proof).toMatchObject({ differences: [] });
    // A second run changes nothing.
    expect((await removeOld(database, { keep, now: NOW })).partitions).toEqual([]);
  });

  async function digestOf(id: number): Promise<bigint> {
    const [row] = await database.sql`select digest::text from market.series where id = ${id}`;
    return BigInt(row!.digest as string);
  }

  /** The name of the half detached partition. */
  async function half(): Promise<string | null> {
    const rows = await database.sql<{ name: string }[]>`
      select relname as name from pg_inherits join pg_class on oid = inhrelid where inhdetachpending`;
    return rows[0]?.name ?? null;
  }
});

describe('requests', () => {
  const OLD = NOW - 100 * DAY;
  const request = (rest: Partial<Parameters<typeof recordFetch>[1]> = {}) =>
    recordFetch(database.sql, {
      sentAt: OLD,
      asOf: OLD,
      accountId: 'anonymous@host',
      endpoint: 'ohlcv',
      seriesId: 1,
      span: null,
      backfillId: 7,
      attempt: 1,
      status: 200,
      outcome: 'stored',
      durationMs: 1,
      rows: 10,
      stored: 9,
      revised: 0,
      quarantined: 1,
      bytes: 1,
      bodySha256: null,
      message: null,
      ...rest,
    });
  const remove = (batch = 3, now = NOW) =>
    removeOld(database, { keep: { ...FOR_EVER, fetches: 90 * DAY }, now, batch });
  const left = async () =>
    (await database.sql<{ id: number }[]>`select id from ops.fetch order by id`).map((r) => r.id);

  test('are removed in batches when they are old, and a backfill still reports what it spent and stored', async () => {
    for (let i = 0; i < 10; i++) await request({ outcome: i % 2 === 0 ? 'stored' : 'unavailable', sentAt: OLD + i });
    const young = await request({ sentAt: NOW, asOf: NOW });
    const before = await backfillTotals(database.sql, 7);
    expect((await remove())!.rows.fetch).toBe(10);
    expect(await left()).toEqual([young]);
    expect(await backfillTotals(database.sql, 7)).toEqual(before);
    // Requests are removed in the order of their numbers: an early one with a late number waits for a younger one before it.
    await request();
    await request({ sentAt: NOW });
    expect((await remove())!.rows.fetch).toBe(0);
    expect((await remove(3, NOW + 100 * DAY))!.rows.fetch).toBe(2);
    expect((await backfillTotals(database.sql, 7)).requests).toBe(before.requests + 2);
  });

  test('are kept while a revision, a quarantined row or a refusal refers to them', async () => {
    const ids = [await request(), await request(), await request()] as const;
    const { sql } = database;
    await sql`insert into market.revision (series_id, open_time, seen_at, fetch_id) values (1, now(), now(), ${ids[0]})`;
    await sql`insert into market.quarantine (series_id, reason, row, seen_at, fetch_id) values (1, '', '{}', now(), ${ids[1]})`;
    await sql`insert into market.refusal (account_plan, interval, reason, message, refused_at, fetch_id)
      values ('free', '24h', 'history limit', '', now(), ${ids[2]})`;
    await request();
    const young = await request({ sentAt: NOW });
    await remove();
    expect(await left()).toEqual([...ids, young]);
  });

  test('are kept while their unconfirmed slots may still be confirmed', async () => {
    const day = (n: number) => Date.UTC(2025, 0, n);
    const [covered, open] = [
      { from: day(1), to: day(5) },
      { from: day(5), to: day(9) },
    ];
    const id = await seedSeries(database.sql, {
      coinId: 'a-a',
      interval: '24h',
      wanted: [{ from: day(1), to: day(9) }],
      covered: [covered],
      candles: [],
    });
    await request({ seriesId: id, unconfirmedSlots: [covered] });
    const open1 = await request({ seriesId: id, unconfirmedSlots: [open] });
    const young = await request({ sentAt: NOW });
    await remove();
    expect(await left()).toEqual([open1, young]);
  });

  test('are kept if they are the last of an account, or the last of an endpoint with that outcome', async () => {
    const list = { endpoint: 'coins', seriesId: null, backfillId: null };
    await request({ ...list, sentAt: OLD });
    const lastStored = await request({ ...list, sentAt: OLD + 1 });
    const lastRefused = await request({ ...list, sentAt: OLD + 2, outcome: 'forbidden', status: 403 });
    await request({ accountId: 'key-0@host' });
    const lastOfKey = await request({ accountId: 'key-0@host' });
    await request({ accountId: 'key-0@host', status: null, outcome: 'unavailable' });
    await remove();
    expect(await left()).toEqual([lastStored, lastRefused, lastOfKey]);
  });
});

test('histories of the whole market and of exchanges are kept as long as configured', async () => {
  const { sql } = database;
  await sql`insert into market.global_history (at, updated_at) select t, t
    from generate_series(${'2026-01-01'}::timestamptz, '2026-06-01', '1 day') t`;
  await sql`insert into market.exchange_history (exchange_id, at, updated_at) select 'x', t, t
    from generate_series(${'2026-01-01'}::timestamptz, '2026-06-01', '1 day') t`;
  const keep = { ...FOR_EVER, global: 30 * DAY, exchanges: 60 * DAY };
  const removed = await removeOld(database, { keep, now: NOW, batch: 10 });
  expect(removed.rows).toEqual({ global_history: 136, exchange_history: 106, fetch: 0 });
  expect((await removeOld(database, { keep: FOR_EVER, now: NOW })).rows).toEqual({
    global_history: 0,
    exchange_history: 0,
    fetch: 0,
  });
});

test('of several processes, one removes each partition', async () => {
  await fillMonths(6);
  const all = await Promise.all(
    [1, 2, 3].map(() => removeOld(database, { keep: { ...FOR_EVER, tickers: 90 * DAY }, now: NOW })),
  );
  expect(all.flatMap((removed) => removed.partitions).sort()).toEqual([
    'ticker_history_2026m01',
    'ticker_history_2026m02',
  ]);
});

test('candles that a cancelled backfill left are counted down with their partition: verify finds no difference', async () => {
  const { sql } = database;
  await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: day(800) });
  await recordCoins(sql, [coinNamed('a-a')], day(1_000));
  const target = {
    coinIds: ['a-a'],
    quote: 'usd',
    interval: '24h',
    span: { from: day(300), to: day(367) },
    priority: 0,
  } as const;
  const [id] = await wantSeries(sql, target);
  const backfill = await queueBackfill(sql, {
    ...target,
    requestedAt: day(367),
    plannedRequests: 1,
    spec: {},
  });
  // The last candle is the only one of 2025, and it is not final.
  await storeAnswer(sql, id!, [300, 367], 367);
  await changeBackfill(sql, backfill, 'cancel', day(367));
  const keep = { ...FOR_EVER, candles: { ...FOR_EVER.candles, '24h': 500 * DAY } };
  const expectNoDifference = async (now: number) => {
    for await (const proof of verifySeries(sql, {}, now)) expect(proof).toMatchObject({ differences: [] });
  };
  expect((await removeOld(database, { keep, now: day(1_000) })).partitions).toHaveLength(1);
  await expectNoDifference(day(1_000));
  // Somebody reads the partition, and it is needed again.
  const others = await openDatabase({ url: database.url, max: 1 });
  await others.sql.begin(async (tx) => {
    await tx`select from market.candle_24h`;
    expect((await removeOld(database, { keep, now: day(1_400), waitMs: 200 })).inUse).toHaveLength(1);
  });
  await others.close();
  await ensurePartitions(sql, '24h', { from: day(366), to: day(367) });
  await expectNoDifference(day(1_400));
  expect((await removeOld(database, { keep, now: day(1_400) })).partitions).toHaveLength(1);
  await expectNoDifference(day(1_400));
  expect(await sql`select candles from market.series`).toEqual([{ candles: 0 }]);
});
