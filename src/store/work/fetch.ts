/** One row per upstream request, as it happened. */
import { and, isNotNull, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Span, Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableText } from '../connection/storable-text.ts';
import { tables } from '../connection/tables.ts';
import { fetch } from '../schema/requests.ts';

export type FetchRow = {
  readonly sentAt: Instant;
  /** No fact in the answer is newer than this. */
  readonly asOf: Instant;
  readonly accountId: string;
  /** Which kind of question: `ohlcv`, `coins` … */
  readonly endpoint: string;
  readonly seriesId: number | null;
  readonly span: Span | null;
  readonly backfillId: number | null;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Null when no status line arrived. */
  readonly status: number | null;
  readonly outcome: string;
  readonly durationMs: number;
  /** In the answer. */
  readonly rows: number;
  readonly stored: number;
  readonly revised: number;
  readonly setAside: number;
  /** Of the decoded body. */
  readonly bytes: number;
  readonly bodySha256: Uint8Array | null;
  readonly message: string | null;
  /** About which coin, exchange, tag, person or platform, where that is no series. */
  readonly subject?: string | null;
  /** Of a stored answer about candles: what it said by itself, and what it left in doubt. */
  readonly told?: Spans;
  readonly doubted?: Spans;
};

/** Longer messages (an HTML page as an error) are cut. */
const LONGEST_MESSAGE = 2_000;

/** Resolves to the row's id. */
export async function recordFetch(sql: SqlOrTransaction, row: FetchRow): Promise<number> {
  const [made] = await sql<{ id: number }[]>`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, backfill_id, attempt, status, outcome,
      duration_ms, rows, stored, revised, set_aside, bytes, body_sha256, message, subject, told, doubted)
    values (${row.sentAt}, ${row.asOf}, ${row.accountId}, ${row.endpoint},
      ${row.seriesId}, ${row.span}, ${row.backfillId}, ${row.attempt},
      ${row.status}, ${row.outcome}, ${Math.round(row.durationMs)}, ${row.rows}, ${row.stored}, ${row.revised},
      ${row.setAside}, ${row.bytes}, ${row.bodySha256 === null ? null : Buffer.from(row.bodySha256)},
      ${row.message === null ? null : storableText(row.message).slice(0, LONGEST_MESSAGE)},
      ${row.subject ?? null}, ${row.told ?? null},
      ${row.doubted?.length ? row.doubted : null})
    returning id`;
  return made!.id;
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

/** `again`: an attempt to record it was cut off, and may have been committed all the same. */
export async function recordFetchOnce(sql: SqlOrTransaction, row: FetchRow, again: boolean): Promise<number> {
  return (again ? (await findFetch(sql, row))?.id : undefined) ?? recordFetch(sql, row);
}

type WrittenFetch = Pick<FetchRow, 'stored' | 'revised' | 'setAside'> & { readonly id: number };

/**
 * What an attempt to write this row has left, whose end nobody heard of because the connection was lost: its counts, or null when
 * nothing was written.
 */
export async function findFetch(
  sql: SqlOrTransaction,
  row: Pick<FetchRow, 'accountId' | 'endpoint' | 'seriesId' | 'backfillId' | 'span' | 'sentAt' | 'asOf' | 'subject'>,
): Promise<WrittenFetch | null> {
  // It may still be committing: it holds the series until then.
  if (row.seriesId !== null) await sql`select from market.series where id = ${row.seriesId} for share`;
  // "is not distinct from" could use no index: a database that was away for a moment is asked this by every chunk under way.
  const [found] = await sql<WrittenFetch[]>`
    select id, stored, revised, set_aside from ops.fetch
    where ${row.seriesId === null ? sql`series_id is null` : sql`series_id = ${row.seriesId}`} and as_of = ${row.asOf}
      and sent_at = ${row.sentAt} and account_id = ${row.accountId} and endpoint = ${row.endpoint}
      and backfill_id is not distinct from ${row.backfillId} and subject is not distinct from ${row.subject ?? null}
      and span is not distinct from ${row.span}
    limit 1`;
  return found ?? null;
}
