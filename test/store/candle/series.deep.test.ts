/** Very many series are wanted in few statements. */
import { describe, expect, test } from 'vitest';
import { wantSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { packetsOf } from '../../support/steps.ts';
import { asked, coins, database, day, useCoins } from './series.ts';

useCoins();

describe('wantSeries', () => {
  test('makes 50,000 series in few steps, also when they exist', { timeout: 300_000 }, async () => {
    const many = coins(50_000, 'm');
    await recordCoins(database.sql, many, day(1));
    const coinIds = many.map((c) => c.id);
    for (const span of [
      { from: day(1), to: day(5) },
      { from: day(8), to: day(9) },
      { from: day(8), to: day(9) },
    ]) {
      let ids: readonly unknown[] = [];
      const packets = await packetsOf(database, async (sql) => {
        ids = await wantSeries(sql, asked({ coinIds, span }));
      });
      expect(ids).toHaveLength(50_000);
      expect(packets).toBeLessThan(1_000);
      // Like autovacuum when it analyses the table before the insert is committed: the table has pages, and no rows in them.
      await database.sql`update pg_class set reltuples = 0, relpages = 700 where oid = 'market.series'::regclass`;
    }
  });
});
