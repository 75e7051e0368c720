import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const at = (text: string) => Date.parse(text);

async function partitionsOf(parent: string): Promise<string[]> {
  const rows = await database.sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${parent}::regclass order by 1`;
  return rows.map((row) => row.name);
}

describe('ensurePartitions', () => {
  test('makes partitions of a year for wide candles, a quarter for hours, a month for narrower ones', async () => {
    await ensurePartitions(database.sql, '24h', { from: at('2019-12-31T00:00:00Z'), to: at('2021-01-01T00:00:00Z') });
    await ensurePartitions(database.sql, '1h', { from: at('2023-11-01T00:00:00Z'), to: at('2024-04-01T00:00:01Z') });
    await ensurePartitions(database.sql, '5m', { from: at('2024-01-31T23:55:00Z'), to: at('2024-02-01T00:05:00Z') });
    expect(await partitionsOf('market.candle_24h')).toEqual(['market.candle_24h_2019', 'market.candle_24h_2020']);
    expect(await partitionsOf('market.candle_1h')).toEqual([
      'market.candle_1h_2023q4',
      'market.candle_1h_2024q1',
      'market.candle_1h_2024q2',
    ]);
    expect(await partitionsOf('market.candle_5m')).toEqual(['market.candle_5m_2024m01', 'market.candle_5m_2024m02']);
  });

  test('gives each partition the primary key, so that a candle is stored once', async () => {
    await ensurePartitions(database.sql, '12h', { from: at('2022-01-01T00:00:00Z'), to: at('2022-01-02T00:00:00Z') });
    const insert = () => database.sql`
      insert into market.candle (open_time, series_id, interval) values ('2022-01-01T12:00:00Z', 1, '12h')`;
    await insert();
    await expect(insert()).rejects.toThrow('duplicate key');
    await database.sql`delete from market.candle where series_id = 1`;
  });

  test('waits for no reader and no writer', async () => {
    const others = await openDatabase({ url: database.url, max: 1 });
    try {
      await ensurePartitions(database.sql, '6h', { from: at('2020-01-01T00:00:00Z'), to: at('2020-02-01T00:00:00Z') });
      await others.sql.begin(async (tx) => {
        await tx`select count(*) from market.candle`;
        await tx`insert into market.candle (open_time, series_id, interval) values ('2020-01-01T06:00:00Z', 1, '6h')`;
        // The open transaction holds both locks. A statement that needed a stronger one would fail at the lock timeout.
        await database.sql`set lock_timeout = '5s'`;
        await ensurePartitions(database.sql, '6h', {
          from: at('2021-01-01T00:00:00Z'),
          to: at('2022-01-01T00:00:00Z'),
        });
      });
      expect(await partitionsOf('market.candle_6h')).toContain('market.candle_6h_2021');
    } finally {
      await others.close();
    }
  });

  test('may be called by many processes at once', async () => {
    const span = { from: at('2015-01-01T00:00:00Z'), to: at('2016-01-01T00:00:00Z') };
    await Promise.all(Array.from({ length: 8 }, () => ensurePartitions(database.sql, '15m', span)));
    expect(await partitionsOf('market.candle_15m')).toHaveLength(12);
  });

  test('makes nothing for an empty span, and rejects an endless one', async () => {
    await ensurePartitions(database.sql, '30m', { from: 5, to: 5 });
    expect(await partitionsOf('market.candle_30m')).toEqual([]);
    const from = at('2020-01-01T00:00:00Z');
    await expect(ensurePartitions(database.sql, '30m', { from, to: Number.POSITIVE_INFINITY })).rejects.toThrow(
      RangeError,
    );
    await expect(ensurePartitions(database.sql, '30m', { from: Number.NEGATIVE_INFINITY, to: from })).rejects.toThrow(
      RangeError,
    );
  });
});
