/** A database with one series, and readers of its views. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import type { Span } from '../../src/core/span.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { makeCurrentAccount, saveAccount } from '../../src/store/quota/account.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ANONYMOUS, BTC } from '../support/sample-records.ts';

export let database: TestDatabase;

export function useSeries(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    await recordCoins(database.sql, [BTC], JANUARY);
    [seriesId = 0] = await wantSeries(database.sql, {
      coinIds: [BTC.id],
      quote: 'usd',
      interval: '24h',
      span: days(1, 11),
      priority: 0,
    });
    await saveAccount(database.sql, ANONYMOUS);
    await makeCurrentAccount(database.sql, ANONYMOUS.id);
  });
  afterEach(() => database.sql`truncate market.coin, market.candle, ops.account cascade`);
}

export const JANUARY = Date.UTC(2024, 0, 1);
export const day = (n: number) => JANUARY + (n - 1) * DAY;
export const days = (from: number, to: number): Span => ({ from: day(from), to: day(to) });

export let seriesId: number;
