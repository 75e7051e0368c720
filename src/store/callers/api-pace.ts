/** The token buckets of the callers of this service, as all processes on the database share them. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

export type TokensTaken = {
  /** `key:3`, or `address:192.0.2.7`. */
  readonly subject: string;
  /** How long the bucket needs to refill by the tokens that were taken. */
  readonly refillMs: number;
};

/**
 * One statement for any number of callers: takes the tokens from their buckets, in which there may be fewer. Resolves to when each
 * bucket is full again. An instant further ahead than `mostAheadMs` was written before a clock was set back: that bucket counts as full.
 */
export async function takeTokens(
  sql: SqlOrTransaction,
  taken: readonly TokensTaken[],
  { now, mostAheadMs }: { readonly now: Instant; readonly mostAheadMs: number },
): Promise<{ readonly subject: string; readonly fullAt: Instant }[]> {
  // Every process locks the rows in the same order, so two processes never wait for each other.
  return sql`
    insert into ops.api_pace as p (subject, full_at)
    select subject, ${now}::timestamptz + make_interval(secs => sum(refill_ms) / 1000)
    from unnest(${taken.map(({ subject }) => subject)}::text[], ${taken.map(({ refillMs }) => refillMs)}::float8[]) t (subject, refill_ms)
    group by subject order by subject
    on conflict (subject) do update set full_at = excluded.full_at +
      case when p.full_at between ${now} and ${now}::timestamptz + make_interval(secs => ${mostAheadMs}::float8 / 1000)
        then p.full_at - ${now}::timestamptz else interval '0' end
    returning subject, full_at`;
}

/** Buckets that have been full for a day. */
export async function forgetFullBuckets(sql: SqlOrTransaction, now: Instant): Promise<void> {
  await sql`
    delete from ops.api_pace where subject in (
      select subject from ops.api_pace where full_at < ${now}::timestamptz - interval '1 day' for update skip locked
    )`;
}
