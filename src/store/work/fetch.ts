/** The log of upstream requests: one row per request. */

import { and, isNotNull, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { fetch } from '../schema/requests.ts';
import { storableText } from '../values/storable-text.ts';

type Row = Readonly<typeof fetch.$inferSelect>;
type Optional = 'subject' | 'answeredSlots' | 'unconfirmedSlots';
export type FetchRow = Omit<Row, 'id' | Optional> & {
  readonly subject?: string | null;
  readonly answeredSlots?: Spans;
  readonly unconfirmedSlots?: Spans;
};

/** Longer messages (such as an HTML page) are cut. */
const LONGEST_MESSAGE = 2_000;

/** Resolves to the row's id. */
export async function recordFetch(sql: SqlOrTransaction, row: FetchRow): Promise<number> {
  const [made] = await sql<{ id: number }[]>`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, backfill_id, attempt, status, outcome,
      duration_ms, rows, stored, revised, quarantined, bytes, body_sha256, message, subject, answered_slots, unconfirmed_slots)
    values (${row.sentAt}, ${row.asOf}, ${row.accountId}, ${row.endpoint},
      ${row.seriesId}, ${row.span}, ${row.backfillId}, ${row.attempt},
      ${row.status}, ${row.outcome}, ${Math.round(row.durationMs)}, ${row.rows}, ${row.stored}, ${row.revised},
      ${row.quarantined}, ${row.bytes}, ${row.bodySha256 === null ? null : Buffer.from(row.bodySha256)},
      ${row.message === null ? null : storableText(row.message).slice(0, LONGEST_MESSAGE)},
      ${row.subject ?? null}, ${row.answeredSlots ?? null},
      ${row.unconfirmedSlots?.length ? row.unconfirmedSlots : null})
    returning id`;
  return made!.id;
}

/** The latest requests to search, and the most requests of backfills to return. */
const RECENT = { requests: 5_000, ofBackfills: 1_500 };

/** The requests for backfills since `since`, newest first. `isLast` is true when the request completed the chunk. */
export async function readSentForBackfills(
  sql: SqlOrTransaction,
  since: Instant,
): Promise<readonly { readonly sentAt: Instant; readonly isLast: boolean }[]> {
  return sql`
    select sent_at, outcome not in ('unavailable', 'limited', 'malformed', 'implausible') as is_last from ops.fetch
    where id > (select max(id) from ops.fetch) - ${RECENT.requests} and backfill_id is not null and sent_at > ${since}
    order by id desc limit ${RECENT.ofBackfills}`;
}

/** Did the upstream at `host` ever answer one of our accounts? Searches all requests, so it is only for rare cases. */
export async function hasAnswered(sql: SqlOrTransaction, host: string): Promise<boolean> {
  const isOfHost = raw`right(${fetch.accountId}, length(${host}) + 1) = '@' || ${host}`;
  const [row] = await tables(sql)
    .select({ id: fetch.id })
    .from(fetch)
    .where(and(isNotNull(fetch.status), isOfHost))
    .limit(1);
  return row !== undefined;
}

/** Records the row, unless an earlier try did. `again` is true when that try lost its connection, so the row may exist. */
export async function recordFetchOnce(sql: SqlOrTransaction, row: FetchRow, again: boolean): Promise<number> {
  return (again ? (await findFetch(sql, row))?.id : undefined) ?? recordFetch(sql, row);
}

export type WrittenFetch = Pick<Row, 'id' | 'stored' | 'revised' | 'quarantined'>;

/**
 * Finds a row after the connection was lost during its insert, when it is unknown whether the transaction was committed. Resolves to its
 * counts, or to null when the row does not exist.
 */
export async function findFetch(
  sql: SqlOrTransaction,
  row: Pick<FetchRow, 'accountId' | 'endpoint' | 'seriesId' | 'backfillId' | 'span' | 'sentAt' | 'asOf' | 'subject'>,
): Promise<WrittenFetch | null> {
  // That transaction may still be committing; until then it holds a lock on the series.
  if (row.seriesId !== null) await sql`select from market.series where id = ${row.seriesId} for share`;
  // The first condition is not "is not distinct from", which uses no index: after an outage, every chunk in progress runs this.
  const [found] = await sql<WrittenFetch[]>`
    select id, stored, revised, quarantined from ops.fetch
    where ${row.seriesId === null ? sql`series_id is null` : sql`series_id = ${row.seriesId}`} and as_of = ${row.asOf}
      and sent_at = ${row.sentAt} and account_id = ${row.accountId} and endpoint = ${row.endpoint}
      and backfill_id is not distinct from ${row.backfillId} and subject is not distinct from ${row.subject ?? null}
      and span is not distinct from ${row.span}
    limit 1`;
  return found ?? null;
}
