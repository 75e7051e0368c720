/**
 * The locks under which one process at a time does something. Each is a row of `ops.lock`, which only the owner of the schema may read: an
 * advisory lock could be taken, and kept, by anybody who may log in.
 */
import type { Sql, SqlOrTransaction } from './connect.ts';

/** Migrations and audits of many series hold theirs for longer than any lock of a table: that is no fault. */
const PATIENCE = '15min';

/** Waits until no other transaction holds the lock of this name, and holds it until this transaction ends. */
export async function takeLock(tx: SqlOrTransaction, name: string): Promise<void> {
  await tx`select set_config('lock_timeout', ${PATIENCE}, true)`;
  const rows = await tx`select from ops.lock where name = ${name} for update`;
  // The first time ever. Of two transactions that insert the row at once, the second waits here.
  if (rows.length === 0)
    await tx`insert into ops.lock (name) values (${name}) on conflict (name) do update set name = excluded.name`;
  await tx`set local lock_timeout to default`;
}

/** Runs `work` while no other process does the same under this name; resolves to null, without having run it, when one does. */
export async function withLockUnlessHeld<T>(sql: Sql, name: string, work: () => Promise<T>): Promise<T | null> {
  await sql`insert into ops.lock (name) values (${name}) on conflict do nothing`;
  return (await sql.begin(async (tx) => {
    // The server may limit such sessions, and this one waits for the work.
    await tx`select set_config('idle_in_transaction_session_timeout', '0', true)`;
    const rows = await tx`select from ops.lock where name = ${name} for update skip locked`;
    return rows.length === 0 ? null : work();
  })) as T | null;
}
