/** Which lake this warehouse keeps up to date. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { lake } from '../schema/service.ts';

export type KnownLake = Pick<typeof lake.$inferSelect, 'id' | 'place' | 'at' | 'nextAt'>;
/** Nothing of it was written yet. */
export type NewLake = Pick<KnownLake, 'id' | 'place'>;

/** Null: there is none. */
export async function readLake(sql: SqlOrTransaction): Promise<KnownLake | null> {
  const [row] = await tables(sql)
    .select({ id: lake.id, place: lake.place, at: lake.at, nextAt: lake.nextAt })
    .from(lake);
  return row ?? null;
}

/** Unless there is one already. Resolves to the one that is known from then on. */
export async function beginLake(sql: SqlOrTransaction, { id, place }: NewLake): Promise<KnownLake> {
  await tables(sql).insert(lake).values({ id, place }).onConflictDoNothing();
  return (await readLake(sql))!;
}

/** Its manifest of this instant comes next. */
export async function announceManifest(sql: SqlOrTransaction, id: string, nextAt: Instant): Promise<void> {
  await updateRows(sql, lake, { id }, { nextAt });
}

/** Its manifest is there. Does nothing when another lake has taken its place meanwhile. */
export async function completeLake(
  sql: SqlOrTransaction,
  { id, ...completed }: { readonly id: string; readonly place: string; readonly at: Instant },
): Promise<void> {
  await updateRows(sql, lake, { id }, completed);
}

/** From now on this one is the lake, or none is (null). */
export async function replaceLake(sql: SqlOrTransaction, one: NewLake | null): Promise<void> {
  if (one === null) {
    await tables(sql).delete(lake);
    return;
  }
  const next = { ...one, at: null, nextAt: null };
  await tables(sql).insert(lake).values(next).onConflictDoUpdate({ target: lake.isOnly, set: next });
}
