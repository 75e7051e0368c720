/** Identifies this warehouse among all that share a Redis, and records whether its data is real or from a simulator. */
import { createHash } from 'node:crypto';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { origin } from '../schema/accounts.ts';

/** Twelve hex digits: the same for all processes on this database, and different for every other database and server. */
export async function readInstallationId(sql: SqlOrTransaction): Promise<string> {
  const [row] = await sql<{ name: string }[]>`
    select system_identifier || '/' || current_database() as name from pg_control_system()`;
  return createHash('sha256').update(row!.name).digest('hex').slice(0, 12);
}

/**
 * Dedicates this warehouse to the market of a simulator, or to the real market (null), unless it is dedicated already. Resolves to the
 * simulator whose data it contains; null for real data.
 */
export async function claimOrigin(sql: SqlOrTransaction, simulator: string | null): Promise<string | null> {
  await tables(sql).insert(origin).values({ simulator }).onConflictDoNothing();
  const [row] = await tables(sql).select().from(origin);
  return row!.simulator;
}
