/** The quarantine: rows that cannot be true, as upstream sent them, with the reason. They are stored nowhere else. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableJson, storableText } from '../values/storable-text.ts';
import { type FetchRow, recordFetch } from '../work/fetch.ts';

export type QuarantinedRow = {
  /** Null when the row belongs to no requested slot. */
  readonly openTime: Instant | null;
  readonly reason: string;
  /** The row as upstream sent it. */
  readonly row: unknown;
};

/** The open times whose quarantined rows are exactly the same as in the last answer that had quarantined rows there. */
export async function repeatedRows(
  tx: SqlOrTransaction,
  seriesId: number,
  rows: readonly QuarantinedRow[],
): Promise<ReadonlySet<Instant>> {
  const tied = rows.filter((r) => r.openTime !== null);
  if (tied.length === 0) return new Set();
  const found = await tx<{ at: number }[]>`
    with now as (
      select at, array_agg(row::jsonb order by row::jsonb) as rows
      from unnest(${tied.map((r) => r.openTime)}::timestamptz[], ${tied.map((r) => storableJson(r.row))}::text[]) as u(at, row)
      group by 1
    )
    select at from now
    where rows = (select array_agg(q.row order by q.row) from market.quarantine q
      where q.series_id = ${seriesId} and q.open_time = now.at and q.fetch_id = (select max(last.fetch_id)
        from market.quarantine last where last.series_id = ${seriesId} and last.open_time = now.at))`;
  return new Set(found.map((row) => row.at));
}

export async function quarantine(
  tx: SqlOrTransaction,
  seriesId: number,
  rows: readonly QuarantinedRow[],
  from: { readonly fetchId: number; readonly seenAt: Instant },
): Promise<void> {
  if (rows.length === 0) return;
  await tx`insert into market.quarantine (series_id, open_time, reason, row, fetch_id, seen_at)
    select ${seriesId}, at, reason, row::jsonb, ${from.fetchId}, ${from.seenAt}::timestamptz
    from unnest(${rows.map((r) => r.openTime)}::timestamptz[],
      ${rows.map((r) => storableText(r.reason))}::text[], ${rows.map((r) => storableJson(r.row))}::text[]) as u(at, reason, row)`;
}

/** A quarantined row of a snapshot. `id` is the id in the row; empty when it cannot be read. */
export type QuarantinedRecord = { readonly id: string; readonly reason: string; readonly row: unknown };

/** In characters. Ids are cut here: no real id is longer. */
const LONGEST_ID = 200;

/** Keeps one row per record and reason, from the youngest answer, so that a fault in every snapshot does not fill the table. */
export async function quarantineRecords(
  tx: SqlOrTransaction,
  endpoint: string,
  records: readonly QuarantinedRecord[],
  from: { readonly fetchId: number; readonly seenAt: Instant },
): Promise<void> {
  const named = records.map(({ id, reason, row }) => ({
    id: storableText(id).slice(0, LONGEST_ID),
    reason: storableText(reason),
    row: storableJson(row),
  }));
  const once = [...new Map(named.map((r) => [`${r.id} ${r.reason}`, r])).values()];
  if (once.length === 0) return;
  await tx`insert into market.quarantine as q (endpoint, record_id, reason, row, fetch_id, seen_at)
    select ${endpoint}, id, reason, row::jsonb, ${from.fetchId}, ${from.seenAt}::timestamptz
    from unnest(${once.map((r) => r.id)}::text[], ${once.map((r) => r.reason)}::text[], ${once.map((r) => r.row)}::text[])
      as u(id, reason, row)
    on conflict (endpoint, record_id, reason) where endpoint is not null do update
    -- The same request again: its transaction was committed, and repeated because the answer of the database was lost.
    set times = q.times + (q.fetch_id is distinct from excluded.fetch_id)::int,
      row = case when q.seen_at <= excluded.seen_at then excluded.row else q.row end,
      fetch_id = case when q.seen_at <= excluded.seen_at then excluded.fetch_id else q.fetch_id end,
      seen_at = greatest(q.seen_at, excluded.seen_at)`;
}

/** Records the request of an answer that is stored in this transaction, and quarantines its invalid rows. */
export async function recordStored(
  tx: SqlOrTransaction,
  request: FetchRow,
  { rows, stored, quarantined }: { rows: number; stored: number; quarantined: readonly QuarantinedRecord[] },
): Promise<void> {
  const counts = { rows, stored, revised: 0, quarantined: quarantined.length };
  const fetchId = await recordFetch(tx, { ...request, outcome: 'stored', ...counts });
  await quarantineRecords(tx, request.endpoint, quarantined, { fetchId, seenAt: request.asOf });
}

/** Deletes the quarantined rows of these records that have this reason. */
export async function releaseRecords(
  tx: SqlOrTransaction,
  endpoint: string,
  { ids, reason }: { readonly ids: readonly string[]; readonly reason: string },
): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    delete from market.quarantine where endpoint = ${endpoint} and reason = ${reason} and record_id = any(${ids as string[]}::text[])`;
}
