/** The lake that this warehouse keeps up to date. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { lake } from '../schema/service.ts';

export type KnownLake = Pick<typeof lake.$inferSelect, 'id' | 'place' | 'at' | 'nextAt'>;
/** A lake without any file yet. */
export type NewLake = Pick<KnownLake, 'id' | 'place'>;

/** Null when there is no lake. */
export async function readLake(sql: SqlOrTransaction): Promise<KnownLake | null> {
  const [row] = await tables(sql)
    .select({ id: lake.id, place: lake.place, at: lake.at, nextAt: lake.nextAt })
    .from(lake);
  return row ?? null;
}

/** Records the lake, unless there is one already. Resolves to the recorded lake. */
export async function beginLake(sql: SqlOrTransaction, { id, place }: NewLake): Promise<KnownLake> {
  await tables(sql).insert(lake).values({ id, place }).onConflictDoNothing();
  return (await readLake(sql))!;
}

/** Records that the manifest of `nextAt` will be written next. */
export async function announceManifest(sql: SqlOrTransaction, id: string, nextAt: Instant): Promise<void> {
  await updateRows(sql, lake, { id }, { nextAt });
}

/** Records that the manifest is written. Does nothing when another lake has replaced this one meanwhile. */
export async function completeLake(
  sql: SqlOrTransaction,
  { id, ...completed }: { readonly id: string; readonly place: string; readonly at: Instant },
): Promise<void> {
  await updateRows(sql, lake, { id }, completed);
}

/** Makes `one` the lake, or removes the lake (null). */
export async function replaceLake(sql: SqlOrTransaction, one: NewLake | null): Promise<void> {
  if (one === null) {
    await tables(sql).delete(lake);
    return;
  }
  const next = { ...one, at: null, nextAt: null };
  await tables(sql).insert(lake).values(next).onConflictDoUpdate({ target: lake.isOnly, set: next });
}
