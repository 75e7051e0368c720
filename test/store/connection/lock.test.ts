/** Locks under which only one process at a time does something. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLockUnlessHeld } from '../../../src/store/connection/lock.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

test('the loss of a lock is reported when the work has ended, not while it still runs', async () => {
  const { sql } = database;
  let isDone = false;
  const working = withLockUnlessHeld(sql, 'x', async () => {
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`;
    await new Promise((resolve) => setTimeout(resolve, 500));
    isDone = true;
  });
  await expect(working).rejects.toThrow();
  expect(isDone).toBe(true);
});
