/** Figures that take long to count over millions of rows. A service stores its last count and when it counted. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { counted } from '../schema/service.ts';

type Counted<T> = {
  readonly countedAt: Instant;
  /** Milliseconds that the count took: the longer, the later the next count. */
  readonly tookMs: number;
  readonly answer: T;
};

/** Null when no service has counted it. */
export async function readCounted<T>(sql: SqlOrTransaction, name: string): Promise<Counted<T> | null> {
  const [row] = await tables(sql).select().from(counted).where(matches(counted, { name }));
  return row === undefined ? null : { countedAt: row.countedAt, tookMs: row.tookMs, answer: row.answer as T };
}

export async function saveCounted<T>(sql: SqlOrTransaction, name: string, row: Counted<T>): Promise<void> {
  await tables(sql)
    .insert(counted)
    .values({ name, ...row })
    .onConflictDoUpdate({ target: counted.name, set: row });
}

/** Deletes a figure that is no longer updated. */
export async function forgetCounted(sql: SqlOrTransaction, name: string): Promise<void> {
  await tables(sql).delete(counted).where(matches(counted, { name }));
}
