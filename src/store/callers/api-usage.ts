/**
 * The requests of the callers of this service. A process leases some requests of a caller from the row, and then
 * answers that many without a statement. The lease of a process that dies stays counted, so no caller ever gets more than its limit.
 */
import { and, like, lt } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { apiUsage } from '../schema/callers.ts';

export type LeaseWish = {
  /** `key:3`, or `address:192.0.2.7`. */
  readonly subject: string;
  readonly wanted: number;
  /** Null means no limit. */
  readonly perMonth: number | null;
  readonly perDay: number | null;
};

type Usage = {
  readonly subject: string;
  /** The start of each counted window. */
  readonly month: Instant;
  readonly day: Instant;
  /** Includes everything that processes have leased. */
  readonly monthSpent: number;
  readonly daySpent: number;
};

/** The usage, as far as processes have reported. */
type ReportedUsage = Usage & {
  /** The part of `monthSpent` that is leased and not used. */
  readonly monthLeased: number;
};

export type LeaseGrant = Usage & { readonly granted: number };

/** Grants each caller as many of the wanted requests as fit into both windows. Any number of callers, each once, share two statements. */
export async function takeLeases(
  sql: SqlOrTransaction,
  wishes: readonly LeaseWish[],
  { now, month, day }: { readonly now: Instant; readonly month: Instant; readonly day: Instant },
): Promise<LeaseGrant[]> {
  const subjects = wishes.map((wish) => wish.subject);
  // Every process locks the rows in the same order, so two processes never wait for each other.
  await sql`
    insert into ops.api_usage (subject, month_start, month_spent, day_start, day_spent, updated_at)
    select s, ${month}::timestamptz, 0, ${day}::timestamptz, 0, ${now}::timestamptz from unnest(${subjects}::text[]) s order by s
    on conflict do nothing`;
  return sql<LeaseGrant[]>`
    with asked as (
      select * from unnest(${subjects}::text[], ${wishes.map((wish) => wish.wanted)}::bigint[],
        ${wishes.map((wish) => wish.perMonth)}::bigint[], ${wishes.map((wish) => wish.perDay)}::bigint[])
        as a (subject, wanted, per_month, per_day)
    ), locked as materialized (
      select u.*, a.wanted, a.per_month, a.per_day from asked a join ops.api_usage u on u.subject = a.subject
      order by u.subject for update of u
    ), counted as (
      -- Windows only move forward: a process whose clock is behind counts in the window that has already begun.
      select *, greatest(month_start, ${month}::timestamptz) as month, greatest(day_start, ${day}::timestamptz) as day,
        case when month_start >= ${month} then month_spent else 0 end as month_used,
        case when month_start >= ${month} then month_leased else 0 end as leased_before,
        case when day_start >= ${day} then day_spent else 0 end as day_used
      from locked
    ), judged as (
      select *, greatest(0, least(wanted, per_month - month_used, per_day - day_used)) as granted from counted
    ), taken as (
      update ops.api_usage u set month_start = j.month, month_spent = j.month_used + j.granted,
        month_leased = j.leased_before + j.granted, day_start = j.day, day_spent = j.day_used + j.granted, updated_at = ${now}
      from judged j where u.subject = j.subject
    )
    select subject, granted::float8, (month_used + granted)::float8 as month_spent, (day_used + granted)::float8 as day_spent, month, day
    from judged`;
}

export type LeaseReturn = Pick<Usage, 'subject' | 'month' | 'day'> & {
  /** Requests that are returned. */
  readonly unused: number;
  /** Leased requests of that month that were used since the last report. */
  readonly used: number;
};

/**
 * Returns unused requests of leases, and records the used ones. Never repeat this when its outcome is unknown: a lease that is returned twice
 * would give the caller more than its limit.
 */
export async function returnLeases(sql: SqlOrTransaction, back: readonly LeaseReturn[]): Promise<void> {
  if (back.length === 0) return;
  await sql`
    with given as (
      select * from unnest(${back.map((b) => b.subject)}::text[], ${back.map((b) => b.unused)}::bigint[], ${back.map((b) => b.used)}::bigint[],
        ${back.map((b) => b.month)}::timestamptz[], ${back.map((b) => b.day)}::timestamptz[])
        as g (subject, unused, used, month, day)
    ), locked as materialized (
      select u.subject, g.unused, g.used, g.month, g.day from given g join ops.api_usage u on u.subject = g.subject
      order by u.subject for update of u
    )
    update ops.api_usage u set
      month_spent = case when u.month_start = l.month then greatest(0, u.month_spent - l.unused) else u.month_spent end,
      month_leased = case when u.month_start = l.month then greatest(0, u.month_leased - l.unused - l.used) else u.month_leased end,
      day_spent = case when u.day_start = l.day then greatest(0, u.day_spent - l.unused) else u.day_spent end
    from locked l where u.subject = l.subject`;
}

/** Null when the caller has sent no request yet. */
export async function readUsage(sql: SqlOrTransaction, subject: string): Promise<ReportedUsage | null> {
  const [row] = await sql<ReportedUsage[]>`
    select subject, month_spent::float8, month_leased::float8, day_spent::float8, month_start as month, day_start as day
    from ops.api_usage where subject = ${subject}`;
  return row ?? null;
}

const FORGOTTEN_AFTER_MS = 62 * 86_400_000;

/** Deletes addresses without a request for two months, because their windows are over. Resolves to how many. */
export async function forgetAddresses(sql: SqlOrTransaction, now: Instant): Promise<number> {
  const isOld = lt(apiUsage.updatedAt, now - FORGOTTEN_AFTER_MS);
  const { count } = await tables(sql)
    .delete(apiUsage)
    .where(and(like(apiUsage.subject, 'address:%'), isOld));
  return count;
}
