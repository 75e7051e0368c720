/** A database with three coins. */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { WantedSeries } from '../../../src/store/candle/series.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

export let database: TestDatabase;

export function useCoins(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    await database.sql`truncate market.coin cascade`;
    await recordCoins(
      database.sql,
      ['a-a', 'b-b', 'c-c'].map((id) => ({ ...coins(1)[0]!, id })),
      day(1),
    );
  });
}

export const day = (n: number) => Date.UTC(2024, 0, n);
export const asked = (rest: Partial<WantedSeries>): WantedSeries => ({
  coinIds: ['a-a', 'b-b', 'c-c'],
  quote: 'usd',
  interval: '24h',
  span: { from: day(1), to: day(5) },
  priority: 0,
  ...rest,
});
export const coins = (n: number, prefix = 'c') =>
  Array.from({ length: n }, (_, i) => `${prefix}${i}-coin`).map((id) => ({
    id,
    name: id,
    symbol: 'X',
    rank: 1,
    is_new: false,
    is_active: true,
    type: 'coin',
  }));
