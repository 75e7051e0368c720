/** A database without coins. */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

export let database: TestDatabase;

export function useDatabase(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(() => database.sql`truncate market.coin cascade`);
}

export const MONDAY = Date.UTC(2024, 0, 1);
export const TUESDAY = Date.UTC(2024, 0, 2);

export const coin = (
  id: string,
  rank: number,
  rest: Partial<{ name: string; symbol: string; is_active: boolean }> = {},
) => ({
  id,
  name: id.split('-').slice(1).join(' '),
  symbol: id.split('-')[0]!.toUpperCase(),
  rank,
  is_new: false,
  is_active: true,
  type: 'coin',
  ...rest,
});
