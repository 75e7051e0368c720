import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { compactAllKeys, compactKeys } from '../../../src/store/upkeep/compact.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const never = new AbortController().signal;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fill(2020);
});
afterAll(() => database.drop());

/** Each series newest first, as backfills write, a few series in turn: 292,800 candles. */
async function fill(year: number): Promise<void> {
  await ensurePartitions(database.sql, '24h', { from: Date.UTC(year, 0, 1), to: Date.UTC(year + 1, 0, 1) });
  for (let block = 11; block >= 0; block--) {
    await database.sql`insert into market.candle (open_time, open, series_id, interval)
      select ${`${year}-01-01`}::timestamptz + make_interval(days => ${block * 30} + d), 1, s, '24h'
      from generate_series(1, 800) s, generate_series(29, 0, -1) d`;
  }
}

const keyBytes = async () => {
  const [row] = await database.sql<{ bytes: number }[]>`
    select pg_indexes_size('market.candle_24h_2020'::regclass) / count(*)::float8 as bytes from market.candle_24h_2020`;
  return row!.bytes;
};

const invalid = async () =>
  (
    await database.sql<{ name: string }[]>`select indexrelid::regclass::text as name from pg_index where not indisvalid
    and indrelid in (select relid from pg_partition_tree('market.candle'))`
  ).map(({ name }) => name);

/** Keeps a foreign transaction open while `meanwhile` runs. */
async function whileOpen(begin: readonly string[], meanwhile: () => Promise<void>): Promise<void> {
  const other = await database.sql.reserve();
  try {
    for (const statement of begin) await other.unsafe(statement);
    await meanwhile();
  } finally {
    await other.unsafe('rollback');
    other.release();
  }
}

describe('compaction does not wait for', () => {
  test('a transaction that reads from a snapshot: it begins nothing and leaves no invalid index', async () => {
    await whileOpen(
      ['begin isolation level repeatable read', 'select count(*) from market.candle_24h_2020'],
      async () => {
        expect(await compactKeys(database.sql, '24h', never)).toEqual({ partitions: 0, bytesSaved: 0 });
        expect(await invalid()).toEqual([]);
      },
    );
  });

  test('a transaction with a lock of writers: it gives up, and the next compaction removes what is left', async () => {
    await whileOpen(['begin', 'lock table market.candle_24h_2020 in row exclusive mode'], async () => {
      expect(await compactKeys(database.sql, '24h', never)).toEqual({ partitions: 0, bytesSaved: 0 });
    });
  });

  test('anything after Ctrl-C, which also ends its statement on the server', async () => {
    const stop = new AbortController();
    await whileOpen(['begin', 'lock table market.candle_24h_2020 in row exclusive mode'], async () => {
      const compaction = compactKeys(database.sql, '24h', stop.signal);
      const waiting = async () =>
        (
          await database.sql`select from pg_stat_activity where query ~ '(reindex|drop) index concurrently' and pid <> pg_backend_pid() and state = 'active'
          and datname = current_database()`
        ).length > 0;
      while (!(await waiting())) await systemClock.sleep(5);
      stop.abort();
      expect(await compaction).toEqual({ partitions: 0, bytesSaved: 0 });
      expect(await waiting()).toBe(false);
    });
  });
});

test('half-empty keys are rebuilt once, and every candle is still found', async () => {
  const before = await keyBytes();
  expect(before).toBeGreaterThan(38);
  const first = await compactKeys(database.sql, '24h', never);
  expect(first.partitions).toBe(1);
  expect(first.bytesSaved).toBeGreaterThan(0);
  expect(await keyBytes()).toBeLessThan(33);
  expect(await invalid()).toEqual([]);
  expect(await compactKeys(database.sql, '24h', never)).toEqual({ partitions: 0, bytesSaved: 0 });
  const [row] = await database.sql<{ n: number }[]>`select count(*)::int as n from market.candle where series_id = 7`;
  expect(row!.n).toBe(360);
});

test('compaction skips other intervals, and does nothing once it is being stopped', async () => {
  const stopped = AbortSignal.abort();
  expect(await compactKeys(database.sql, '24h', stopped)).toEqual({ partitions: 0, bytesSaved: 0 });
  expect(await compactKeys(database.sql, '1h', never)).toEqual({ partitions: 0, bytesSaved: 0 });
});

test('while a service writes all the time, compaction finds a moment between two writes', async () => {
  await fill(2021);
  const stop = new AbortController();
  let written = 0;
  const writers = [1, 2, 3].map(async (writer) => {
    while (!stop.signal.aborted) {
      await database.sql.begin(async (tx) => {
        await tx`insert into market.candle (open_time, open, series_id, interval)
          values ('2021-01-01', 1, ${1_000_000 * writer + written}, '24h')`;
        await tx`select pg_sleep(0.005)`;
      });
      written++;
      await systemClock.sleep(20);
    }
  });
  try {
    const { partitions } = await compactAllKeys(database.sql, never);
    expect(partitions).toBe(1);
    expect(written).toBeGreaterThan(5);
    expect(await invalid()).toEqual([]);
  } finally {
    stop.abort();
    await Promise.all(writers);
  }
});
