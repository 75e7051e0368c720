/** Very many coins are recorded in few statements. */
import { describe, expect, test } from 'vitest';
import { countListed, recordCoins, recordTickers } from '../../../src/store/snapshot/coin.ts';
import { packetsOf } from '../../support/steps.ts';
import { coin, database, MONDAY, TUESDAY, useDatabase } from './coin.ts';

useDatabase();

describe('recordCoins', () => {
  test('records 50,000 coins in few steps, also when they exist', { timeout: 300_000 }, async () => {
    const many = Array.from({ length: 50_000 }, (_, i) => coin(`c${i}-coin-${i}`, i + 1));
    for (const at of [MONDAY, TUESDAY]) {
      const facts = {
        coinId: many.map((c) => c.id),
        rank: many.map((c) => c.rank),
        firstDataAt: many.map(() => MONDAY),
      };
      const packets = await packetsOf(database, async (sql) => {
        await recordCoins(sql, many, at);
        await recordTickers(sql, facts, at);
      });
      expect(packets).toBeLessThan(1_000);
      expect(await countListed(database.sql)).toBe(50_000);
    }
  });
});
