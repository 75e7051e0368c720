/**
 * The locks under which one process at a time does something. Each is a row of `ops.lock`, which only the owner of the schema may read: an
 * advisory lock could be taken, and kept, by anybody who may log in.
 */
import type { SqlOrTransaction } from './connect.ts';

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
