/** The sessions of the dashboard, and the single-use forms that were sent. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { dashboardSession } from '../schema/callers.ts';

type Row = Readonly<typeof dashboardSession.$inferSelect>;

/** Begins a session, and deletes all expired ones. */
export async function beginSession(sql: SqlOrTransaction, row: Row): Promise<void> {
  await sql`delete from ops.dashboard_session where expires_at <= ${row.createdAt}`;
  await tables(sql).insert(dashboardSession).values(row);
}

/** Also lets a single-use form be sent again. */
export async function endSession(sql: SqlOrTransaction, tokenHash: Uint8Array): Promise<void> {
  await tables(sql).delete(dashboardSession).where(matches(dashboardSession, { tokenHash }));
}

/**
 * Marks a single-use form as used. The mark is a row in the table of sessions, with a hash that no cookie has; it stays as long as the form's own
 * session can last. Resolves to false when the form was used already.
 */
export async function useForm(sql: SqlOrTransaction, row: Row): Promise<boolean> {
  const made = await tables(sql)
    .insert(dashboardSession)
    .values(row)
    .onConflictDoNothing()
    .returning({ keyId: dashboardSession.keyId });
  return made.length === 1;
}

type FoundSession = { readonly keyId: number; readonly prefix: string; readonly name: string | null };

/** Null when the session has expired, or its key is no longer a valid key of an operator. */
export async function findSession(
  sql: SqlOrTransaction,
  tokenHash: Uint8Array,
  now: Instant,
): Promise<FoundSession | null> {
  const [row] = await sql<FoundSession[]>`
    select k.id as key_id, k.prefix, k.name from ops.dashboard_session s join ops.api_key k on k.id = s.key_id
    where s.token_hash = ${tokenHash} and s.expires_at > ${now} and k.is_operator and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > ${now})`;
  return row ?? null;
}
