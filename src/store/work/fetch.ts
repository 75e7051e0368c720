/** One row per upstream request, as it happened. */

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

/** Longer messages (an HTML page as an error) are cut. */
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

/** Of so many requests the last ones, at most. */
const RECENT = { requests: 5_000, ofBackfills: 1_500 };

/** The requests for backfills since then, the newest first. `isLast`: the chunk is done with it. */
export async function readSentForBackfills(
  sql: SqlOrTransaction,
  since: Instant,
): Promise<readonly { readonly sentAt: Instant; readonly isLast: boolean }[]> {
  return sql`
    select sent_at, outcome not in ('unavailable', 'limited', 'malformed', 'implausible') as is_last from ops.fetch
    where id > (select max(id) from ops.fetch) - ${RECENT.requests} and backfill_id is not null and sent_at > ${since}
    order by id desc limit ${RECENT.ofBackfills}`;
}

/** Did the upstream at `host` ever answer one of our accounts? Looks through all requests, so it is for the rare case. */
export async function hasAnswered(sql: SqlOrTransaction, host: string): Promise<boolean> {
  const isOfHost = raw`right(${fetch.accountId}, length(${host}) + 1) = '@' || ${host}`;
  const [row] = await tables(sql)
    .select({ id: fetch.id })
    .from(fetch)
    .where(and(isNotNull(fetch.status), isOfHost))
    .limit(1);
  return row !== undefined;
}

/** `again`: the connection was lost while the row was being recorded, so it may be there already. */
export async function recordFetchOnce(sql: SqlOrTransaction, row: FetchRow, again: boolean): Promise<number> {
  return (again ? (await findFetch(sql, row))?.id : undefined) ?? recordFetch(sql, row);
}

export type WrittenFetch = Pick<Row, 'id' | 'stored' | 'revised' | 'quarantined'>;

/**
 * For a row whose connection was lost while it was being written, so that nobody knows whether it was committed: its counts, or null
 * when it was not written.
 */
export async function findFetch(
  sql: SqlOrTransaction,
  row: Pick<FetchRow, 'accountId' | 'endpoint' | 'seriesId' | 'backfillId' | 'span' | 'sentAt' | 'asOf' | 'subject'>,
): Promise<WrittenFetch | null> {
  // The transaction may still be committing: it locks the series until then.
  if (row.seriesId !== null) await sql`select from market.series where id = ${row.seriesId} for share`;
  // Not "is not distinct from", which uses no index: after an outage, every chunk in progress asks this.
  const [found] = await sql<WrittenFetch[]>`
    select id, stored, revised, quarantined from ops.fetch
    where ${row.seriesId === null ? sql`series_id is null` : sql`series_id = ${row.seriesId}`} and as_of = ${row.asOf}
      and sent_at = ${row.sentAt} and account_id = ${row.accountId} and endpoint = ${row.endpoint}
      and backfill_id is not distinct from ${row.backfillId} and subject is not distinct from ${row.subject ?? null}
      and span is not distinct from ${row.span}
    limit 1`;
  return found ?? null;
}
