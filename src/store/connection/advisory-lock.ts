/** One process of an installation at a time. */
import type { Sql } from './connect.ts';

/** First half of the key of the advisory locks here. */
const LOCK = 4_242_031;

/**
 * Does `work` unless another process does work of this name: then it resolves to false at once, and nothing is done. The turn ends with
 * the work, or with the connection.
 */
export async function inTurn(sql: Sql, name: string, work: () => Promise<void>): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ mine: boolean }[]>`select pg_try_advisory_xact_lock(${LOCK}, hashtext(${name})) as mine`;
    if (row!.mine) await work();
    return row!.mine;
  });
}
