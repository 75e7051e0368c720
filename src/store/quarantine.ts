/** Rows that cannot be true, as upstream sent them: set aside with the reason, never stored as candles. */
import type { Instant } from '../clock.ts';
import type { SqlOrTransaction } from './connect.ts';

export type SetAsideRow = {
  /** Null when the row names no slot of the question. */
  readonly openTime: Instant | null;
  readonly reason: string;
  /** As it came. */
  readonly row: unknown;
};

/** Open times whose rows were set aside by the answer before exactly as they are now. */
export async function repeatedRows(
  tx: SqlOrTransaction,
  seriesId: number,
  rows: readonly SetAsideRow[],
): Promise<ReadonlySet<Instant>> {
  const tied = rows.filter((r) => r.openTime !== null);
  if (tied.length === 0) return new Set();
  const found = await tx<{ at: number }[]>`
    with now as (
      select to_timestamp(at) as at, array_agg(row::jsonb order by row::jsonb) as rows
      from unnest(${tied.map((r) => String(r.openTime! / 1000))}::float8[], ${tied.map((r) => toJson(r.row))}::text[]) as u(at, row)
      group by 1
    )
    select (extract(epoch from now.at) * 1000)::float8 as at from now
    where rows = (select array_agg(q.row order by q.row) from market.quarantine q
      where q.series_id = ${seriesId} and q.open_time = now.at and q.fetch_id = (select max(last.fetch_id)
        from market.quarantine last where last.series_id = ${seriesId} and last.open_time = now.at))`;
  return new Set(found.map((row) => row.at));
}

export async function quarantine(
  tx: SqlOrTransaction,
  seriesId: number,
  rows: readonly SetAsideRow[],
  from: { readonly fetchId: number; readonly seenAt: Instant },
): Promise<void> {
  if (rows.length === 0) return;
  await tx`insert into market.quarantine (series_id, open_time, reason, row, fetch_id, seen_at)
    select ${seriesId}, to_timestamp(at::float8), reason, row::jsonb, ${from.fetchId}, to_timestamp(${from.seenAt / 1000})
    from unnest(${rows.map((r) => (r.openTime === null ? null : String(r.openTime / 1000)))}::text[],
      ${rows.map((r) => r.reason.replaceAll('\0', '\ufffd'))}::text[], ${rows.map((r) => toJson(r.row))}::text[]) as u(at, reason, row)`;
}

/** What jsonb cannot hold, though JSON can: the character 0 and halves of a surrogate pair. */
function toJson(row: unknown): string {
  return JSON.stringify(row ?? null).replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/gi, '\\ufffd');
}
