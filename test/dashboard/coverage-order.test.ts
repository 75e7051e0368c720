/** Many visitors of the map at once use two connections of the database, not all. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createCoverageOrders } from '../../src/views/dashboard/coverage-order.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeEveryReason } from './coverage-world.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await makeEveryReason(database.sql);
});
afterAll(() => database?.drop());

const BASE = { sort: 'rank', byTier: false } as const;

/**
 * The highest number of concurrent statements that make an order and wait for the table of coins. It polls until there are `least`, and a
 * little longer.
 */
async function waitingWhile(coins: readonly string[], least: number): Promise<number> {
  const { sql } = database;
  const orders = createCoverageOrders(sql, systemClock);
  const { made, most } = await sql.begin(async (locked) => {
    await locked`lock table market.coin in access exclusive mode`;
    const made = Promise.all(coins.map((coin) => orders.of({ ...BASE, coin })));
    let most = 0;
    for (let looks = 0, late = 0; late < 5 && looks < 1_200; looks++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      // Without this a transaction keeps its first snapshot of the statistics.
      await locked`select pg_stat_clear_snapshot()`;
      const [row] = await locked<{ waiting: number }[]>`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%coins as materialized%'`;
      most = Math.max(most, row!.waiting);
      if (most >= least) late++;
    }
    // Not awaited here: the orders wait for the end of this transaction.
    return { made: [made], most };
  });
  const found = await made[0]!;
  expect(found.map((ids) => ids.length)).toEqual(coins.map(() => 1));
  return most;
}

it('the map makes two orders at a time, and the others after them', async () => {
  expect(await waitingWhile(['complete', 'unasked', 'young', 'doubtful', 'broken'], 2)).toBe(2);
});

it('the map makes one order for the same text in upper and lower case', async () => {
  expect(await waitingWhile(['complete', 'COMPLETE', 'Complete'], 1)).toBe(1);
});
