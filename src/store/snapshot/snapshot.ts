/** One snapshot's transaction: what it told, what was set aside, and the record of the request become true together or not at all. */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { quarantineRecords, type SetAsideRecord } from '../candle/quarantine.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { type FetchRow, recordFetch } from '../work/fetch.ts';

export type SnapshotCommit<T> = { readonly stored: number; readonly setAside: number; readonly told: T };

/**
 * `write` stores the answer in the transaction it is given, and resolves to how many rows are new and to what else there is to
 * tell.
 */
export async function storeSnapshot<T>(
  sql: Sql,
  fetch: Omit<FetchRow, 'stored' | 'revised' | 'setAside' | 'outcome'>,
  setAside: readonly SetAsideRecord[],
  write: (tx: SqlOrTransaction) => Promise<{ readonly stored: number; readonly told: T }>,
): Promise<SnapshotCommit<T>> {
  const commit = await sql.begin(async (tx) => {
    const { stored, told } = await write(tx);
    const counts = { stored, setAside: setAside.length };
    const fetchId = await recordFetch(tx, { ...fetch, outcome: 'stored', revised: 0, ...counts });
    await quarantineRecords(tx, fetch.endpoint, setAside, { fetchId, seenAt: fetch.asOf });
    return { ...counts, told };
  });
  return commit as SnapshotCommit<T>;
}

type AskedOf = { readonly endpoint: string; readonly accountId: string };
/** A request of an endpoint as it ended. */
export type PastRequest = { readonly sentAt: Instant; readonly outcome: string; readonly rows: number };

/** The last requests of an endpoint by an account, newest first; those of the future, before the clock was set back, say nothing about now. */
export async function recentRequests(
  sql: SqlOrTransaction,
  { endpoint, accountId, limit, now }: AskedOf & { readonly limit: number; readonly now: Instant },
): Promise<PastRequest[]> {
  return sql<PastRequest[]>`
    select sent_at, outcome, rows from ops.fetch
    where endpoint = ${endpoint} and account_id = ${accountId} and series_id is null
      and sent_at <= ${now + MOST_SKEW_MS}
    order by sent_at desc limit ${limit}`;
}

/** How many rows the last answer of an endpoint had that was believed; null when there is none. */
export async function lastStoredRows(sql: SqlOrTransaction, { endpoint, accountId }: AskedOf): Promise<number | null> {
  const [row] = await sql<{ rows: number }[]>`
    select rows from ops.fetch
    where endpoint = ${endpoint} and account_id = ${accountId} and series_id is null and outcome = 'stored'
    order by sent_at desc limit 1`;
  return row?.rows ?? null;
}

/** Has this account ever been answered with something that could be stored? Looks through all requests, so it is for the rare case. */
export async function hasStored(sql: SqlOrTransaction, accountId: string): Promise<boolean> {
  const [row] = await sql<{ stored: boolean }[]>`
    select exists (select from ops.fetch where account_id = ${accountId} and outcome = 'stored') as stored`;
  return row!.stored;
}
