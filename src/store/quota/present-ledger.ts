/**
 * Reads the ledger's row as of now. An instant further ahead than any report can put it was written under a clock that was far ahead, and set back
 * since. It counts as never written; otherwise it would hold the account until that date.
 */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { DAY, HOUR } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/** The time; null = the database's own clock, which all hosts share. */
type Now = { readonly now: Instant | null };

/** How far ahead of now the ledger may put each instant, in milliseconds. */
const MOST_AHEAD_MS = {
  /** When something was noticed. */
  noticed: MOST_SKEW_MS,
  /** The client bounds the wait after a 429 to a day, and the ledger the wait after a failure to an hour. A probe is given up after a minute. */
  limited: DAY + MOST_SKEW_MS,
  unavailable: HOUR + MOST_SKEW_MS,
  probe: HOUR,
  /** The longest month. */
  exhausted: 32 * DAY,
  /** Windows only move forward, also while a clock is set back by some hours, or by a day. */
  day: 2 * DAY,
  month: 32 * DAY,
} as const;

/** `clock_timestamp()` instead of `now()`, which is the start of the transaction, before it waited for the row. */
export function nowOf(sql: SqlOrTransaction, { now }: Now) {
  return now === null ? sql`clock_timestamp()` : sql`${now}::timestamptz`;
}

/**
 * `present`: the row of `locked`, and `now`, which is read after `locked` has the row. If a window was far ahead, its requests count in the window of
 * now, together with those that were already counted there.
 */
export function presentLedger(sql: SqlOrTransaction, at: Now) {
  const isFar = (column: string, most: keyof typeof MOST_AHEAD_MS) =>
    sql`${sql(column)} > now + ${sql.unsafe(`interval '${MOST_AHEAD_MS[most]} ms'`)}`;
  const written = (column: string, most: keyof typeof MOST_AHEAD_MS) =>
    sql`case when ${isFar(column, most)} then 'epoch' else ${sql(column)} end as ${sql(column)}`;
  const spent = (window: 'day' | 'month') => sql`(
    select coalesce(sum(s.${sql(`${window}_spent`)}), 0)::bigint from ops.quota_spent s
    where s.account_id = timed.account_id and s.${sql(`${window}_start`)} >= date_trunc(${window}, now, 'UTC'))`;
  const windowOf = (window: 'day' | 'month') => sql`
    case when ${isFar(`${window}_start`, window)} then date_trunc(${window}, now, 'UTC') else ${sql(`${window}_start`)} end
      as ${sql(`${window}_start`)},
    case when ${isFar(`${window}_start`, window)} then ${spent(window)} else ${sql(`${window}_spent`)} end
      as ${sql(`${window}_spent`)}`;
  return sql`
    timed as materialized (
      select *, ${nowOf(sql, at)} as now from locked
    ), present as materialized (
      select account_id, now, next_free, ${windowOf('day')}, ${windowOf('month')}, month_limit, month_limit_known, pace_factor,
        ${written('limited_at', 'noticed')}, ${written('limited_until', 'limited')}, limited_streak, limited_message,
        ${written('exhausted_until', 'exhausted')}, exhausted_message,
        ${written('down_at', 'noticed')}, ${written('down_until', 'unavailable')}, down_streak, down_message, probe,
        case when ${isFar('probe_until', 'probe')} then null else probe_until end as probe_until
      from timed
    )`;
}
