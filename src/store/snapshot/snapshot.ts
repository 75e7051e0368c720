/** The transaction of one snapshot: its rows, the quarantined rows and the record of the request are stored together or not at all. */
import { and, desc, lte } from 'drizzle-orm';
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { type QuarantinedRecord, recordStored } from '../candle/quarantine.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { fetch } from '../schema/requests.ts';
import { type FetchRow, findFetch } from '../work/fetch.ts';

type SnapshotCommit = { readonly stored: number; readonly quarantined: number };

/**
 * `write` must store the answer in the given transaction, and resolve to the number of stored rows. `again`: an earlier attempt was cut off, and may
 * have been committed; then this writes nothing.
 */
export async function storeSnapshot(
  sql: Sql,
  request: FetchRow,
  quarantined: readonly QuarantinedRecord[],
  write: (tx: SqlOrTransaction) => Promise<number>,
  again = false,
): Promise<SnapshotCommit> {
  const found = again ? await findFetch(sql, request) : null;
  if (found !== null) return found;
  return sql.begin(async (tx) => {
    const stored = await write(tx);
    await recordStored(tx, request, { rows: request.rows, stored, quarantined });
    return { stored, quarantined: quarantined.length };
  });
}

type Asker = { readonly endpoint: string; readonly accountId: string };
/** A past request of an endpoint and its outcome. */
export type PastRequest = Readonly<Pick<typeof fetch.$inferSelect, 'sentAt' | 'outcome' | 'status' | 'rows'>>;

/** The last requests of an endpoint by an account, newest first; without requests in the future, from before a clock was set back. */
export async function recentRequests(
  sql: SqlOrTransaction,
  { endpoint, accountId, limit, now }: Asker & { readonly limit: number; readonly now: Instant },
): Promise<PastRequest[]> {
  return tables(sql)
    .select({ sentAt: fetch.sentAt, outcome: fetch.outcome, status: fetch.status, rows: fetch.rows })
    .from(fetch)
    .where(and(matches(fetch, { endpoint, accountId, seriesId: null }), lte(fetch.sentAt, now + MOST_SKEW_MS)))
    .orderBy(desc(fetch.sentAt))
    .limit(limit);
}

/** The number of rows in the last stored answer of an endpoint; null when there is none. */
export async function lastStoredRows(sql: SqlOrTransaction, { endpoint, accountId }: Asker): Promise<number | null> {
  const [row] = await tables(sql)
    .select({ rows: fetch.rows })
    .from(fetch)
    .where(matches(fetch, { endpoint, accountId, seriesId: null, outcome: 'stored' }))
    .orderBy(desc(fetch.sentAt))
    .limit(1);
  return row?.rows ?? null;
}

/** Was any answer to this account ever stored? Searches all requests, so it is only for rare cases. */
export async function hasStored(sql: SqlOrTransaction, accountId: string): Promise<boolean> {
  const isStored = matches(fetch, { accountId, outcome: 'stored' });
  const [row] = await tables(sql).select({ id: fetch.id }).from(fetch).where(isStored).limit(1);
  return row !== undefined;
}
