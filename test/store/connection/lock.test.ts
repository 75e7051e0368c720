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
  const loseTransaction = () =>
    sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`;
  const working = withLockUnlessHeld(sql, 'x', async () => {
    await loseTransaction();
    // Another transaction that is lost later: once that is reported, the client has noticed the loss of the lock, too.
    const other = sql.begin(async (tx) => {
      await tx`select`;
      await loseTransaction();
      await new Promise(() => undefined);
    });
    await expect(other).rejects.toThrow();
    isDone = true;
  });
  await expect(working).rejects.toThrow();
  expect(isDone).toBe(true);
});
