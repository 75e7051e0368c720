/** The numbers of the warehouse for `/metrics`. */
import { expect, onTestFinished, test } from 'vitest';
import { readGauges } from '../../../src/views/operations/gauges.ts';
import { createTestDatabase } from '../../support/database.ts';

test('quarantined rows are counted, also when Postgres has lost its statistics in a crash', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { sql } = database;
  await sql`
    insert into market.quarantine (endpoint, record_id, reason, row, seen_at)
    select '/tickers', id, 'has no price', '{}', now() from unnest(array['a', 'b', 'c']) id`;
  await sql`select pg_stat_reset()`;
  expect((await readGauges(sql, Date.now())).quarantined).toBe(3);
});
