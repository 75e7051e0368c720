/**
 * The locks under which one process at a time does something. Each is a row of `ops.lock`, which only the owner of the schema may read: an
 * advisory lock could be taken, and kept, by anybody who may log in.
 */
import type { SqlOrTransaction } from './connect.ts';

/** Waits until no other transaction holds the lock of this name, and holds it until this transaction ends. */
export async function takeLock(tx: SqlOrTransaction, name: string): Promise<void> {
  const rows = await tx`select from ops.lock where name = ${name} for update`;
  if (rows.length > 0) return;
  // The first time ever. Of two transactions that insert the row at once, the second waits here.
  await tx`insert into ops.lock (name) values (${name}) on conflict (name) do update set name = excluded.name`;
}
