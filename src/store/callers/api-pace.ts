/** The token buckets of the callers of this service. All processes on the database share them. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { isLocked } from '../connection/database-unavailable.ts';

export type TokensTaken = {
  /** `key:3`, or `address:192.0.2.7`. */
  readonly subject: string;
  /** Milliseconds in which the bucket refills by the taken tokens. */
  readonly refillMs: number;
};

type Now = { readonly now: Instant; readonly mostAheadMs: number };
type Taken = { readonly subject: string; readonly fullAt: Instant };

/** Every process needs a row only for milliseconds. If a process holds it longer, it hangs, and callers do not wait for it. */
const LOCK_MS = 250;

/**
 * Takes tokens from the buckets of any number of callers in one statement, even more than are left. Resolves to when each bucket is full
 * again. An instant further ahead than `mostAheadMs` was written before a clock was set back: that bucket counts as full. If another process
 * holds the row of a bucket for longer than `LOCK_MS`, the bucket is left out, and no tokens are taken from it.
 */
export async function takeTokens(sql: SqlOrTransaction, taken: readonly TokensTaken[], now: Now): Promise<Taken[]> {
  try {
    return await take(sql, taken, now);
  } catch (error) {
    if (!isLocked(error)) throw error;
  }
  return take(sql, taken, { ...now, leavesOutHeld: true }).catch((error: unknown) => {
    // Another transaction has just inserted a row, or locks the whole table.
    if (isLocked(error)) return [];
    throw error;
  });
}

function take(
  sql: SqlOrTransaction,
  taken: readonly TokensTaken[],
  { now, mostAheadMs, leavesOutHeld = false }: Now & { readonly leavesOutHeld?: boolean },
): Promise<Taken[]> {
  const isRequested = leavesOutHeld
    ? sql`(t.subject in (select subject from free) or not exists (select from ops.api_pace p where p.subject = t.subject))`
    : sql`true`;
  // Every process locks the rows in the same order, so two processes never wait for each other.
  return sql<Taken[]>`
    with quick as materialized (
      select set_config('lock_timeout', ${`${LOCK_MS}ms`}, true) as ms
    ), taken as materialized (
      select subject, sum(refill_ms) as refill_ms from quick, unnest(
        ${taken.map(({ subject }) => subject)}::text[], ${taken.map(({ refillMs }) => refillMs)}::float8[]) t (subject, refill_ms)
      where quick.ms is not null group by subject order by subject
    ), free as materialized (
      select p.subject from taken t join ops.api_pace p on p.subject = t.subject order by p.subject for update of p skip locked
    )
    insert into ops.api_pace as p (subject, full_at)
    select t.subject, ${now}::timestamptz + make_interval(secs => t.refill_ms / 1000) from taken t where ${isRequested} order by t.subject
    on conflict (subject) do update set full_at = excluded.full_at +
      case when p.full_at between ${now} and ${now}::timestamptz + make_interval(secs => ${mostAheadMs}::float8 / 1000)
        then p.full_at - ${now}::timestamptz else interval '0' end
    returning subject, full_at`;
}

/** Deletes buckets that have been full for a day. */
export async function forgetFullBuckets(sql: SqlOrTransaction, now: Instant): Promise<void> {
  await sql`
    delete from ops.api_pace where subject in (
      select subject from ops.api_pace where full_at < ${now}::timestamptz - interval '1 day' for update skip locked
    )`;
}
