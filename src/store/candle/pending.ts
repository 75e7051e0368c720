/** Gaps that upstream has answered without a final word: why, and when asking again is worth a request. */
import type { Instant } from '../../clock.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

export type PendingReason = 'provisional' | 'unconfirmed' | 'malformed';

export type Pending = {
  readonly span: Span;
  readonly reason: PendingReason;
  /** Answers that agreed so far; 0 when the only one was no witness. */
  readonly answers: number;
  /** On our clock, as is `dueAt`: when it was last asked, but for questions before it was due. */
  readonly askedAt: Instant;
  /** Infinite: not asked again by itself. */
  readonly dueAt: Instant;
};

export function clipPending(list: readonly Pending[], to: Spans): Pending[] {
  return list.flatMap((p) => intersect([p.span], to).map((part) => ({ ...p, span: part })));
}

/**
 * Is a second answer due somewhere that could prove nothing, because the latest list of coins is older than the first? All
 * three are compared by their as-of instants.
 */
export async function absencesAwaitList(sql: SqlOrTransaction, now: Instant): Promise<boolean> {
  const [row] = await sql<{ awaits: boolean }[]>`
    select exists (
      select from market.pending p
      where p.reason = 'unconfirmed' and p.answers > 0 and p.due_at <= ${now} and not exists (
        select from ops.fetch f cross join unnest(f.doubted) as d (span)
        where f.series_id = p.series_id and f.doubted && p.span and d.span && p.span
          and f.as_of <= (select max(last_seen_at) from market.coin)
          and not exists (select from ops.fetch g where g.series_id = f.series_id and g.outcome = 'stored' and g.as_of > f.as_of
            and coalesce(g.told, tstzmultirange(g.span)) && d.span)
      )
    ) as awaits`;
  return row!.awaits;
}

/** The rows `before` are no more; those of `after` are. Under the series' lock. */
export async function replacePending(
  tx: SqlOrTransaction,
  seriesId: number,
  before: readonly Pending[],
  after: readonly Pending[],
): Promise<void> {
  if (before.length > 0) {
    await tx`delete from market.pending where series_id = ${seriesId} and span = any(${before.map((p) => p.span)}::tstzrange[])`;
  }
  if (after.length === 0) return;
  await tx`insert into market.pending (series_id, span, reason, answers, asked_at, due_at)
    select ${seriesId}, span, reason, answers, asked_at, due_at
    from unnest(${after.map((p) => p.span)}::tstzrange[], ${after.map((p) => p.reason)}::text[],
      ${after.map((p) => p.answers)}::int[], ${after.map((p) => p.askedAt)}::timestamptz[],
      ${after.map((p) => p.dueAt)}::timestamptz[]) as u(span, reason, answers, asked_at, due_at)`;
}
