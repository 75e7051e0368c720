import { expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { makeSeries, prepareChunks, storePrepared } from '../../bench/prepared.ts';
import { createTestDatabase } from '../../support/database.ts';

test('Postgres does not plan the large statements of an answer anew for each one, however many partitions there are', async () => {
  const database = await createTestDatabase({ max: 1 });
  try {
    const { sql } = database;
    const [from, to] = [Date.UTC(1995, 0, 1), Date.UTC(2025, 0, 1)];
    await ensurePartitions(sql, '24h', { from, to });
    const span = { from: to - 20 * DAY, to };
    const series = await makeSeries(sql, 'coin', 2, '24h', span);
    for (const chunk of prepareChunks(series, '24h', span, 2)) await storePrepared(sql, chunk, to + 90 * DAY);
    const planned = await sql<{ statement: string; custom: number; generic: number }[]>`
      select statement, custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
      where custom_plans + generic_plans >= 20`;
    // The candles around the answer are read by a small statement, which is planned for their few partitions.
    const large = planned.filter(({ statement }) => !/^\s*select json_agg/.test(statement));
    expect(large.some(({ statement }) => statement.includes('answered_slots'))).toBe(true);
    // Postgres compares its first five plans with a general one.
    expect(large.filter(({ custom }) => custom > 5)).toEqual([]);
  } finally {
    await database.drop();
  }
});
