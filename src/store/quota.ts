/** The ledger's row: one statement takes requests from every window or from none, a few others write down what upstream said. */
import type { Instant } from '../clock.ts';
import type { Sql, SqlOrTransaction } from './connect.ts';

/** Which account, and what time it is: null = the database's own clock, which all hosts share. */
export type At = { readonly accountId: string; readonly now: Instant | null };

export type TakeArgs = At & {
  /** How many requests are wanted; as many as fit are granted, one after the other. */
  readonly wanted: number;
  readonly perMonth: number | null;
  /** `perMonth` was set by the operator: what upstream says may lower it, not raise it. */
  readonly perMonthFixed: boolean;
  readonly perDay: number | null;
  /** Between two requests at full pace; 0 = no pace. */
  readonly gapMs: number;
  readonly runAheadMs: number;
  readonly graceMs: number;
  /** How long the others wait for a probe. */
  readonly probeMs: number;
  /** What must still be there after this request has been counted. */
  readonly leaveMonth: number;
  readonly leaveDay: number;
  /** Goes through a spent window's hold. */
  readonly asksAccount: boolean;
  readonly spenderClass: string;
  readonly spenderName: string;
};

export type TakeRow = {
  /** Null = granted. */
  readonly denied: 'month' | 'day' | 'set aside' | 'queue' | 'limited' | 'spent' | 'unavailable' | null;
  /** 0 when denied; else from 1 to what was wanted. */
  readonly granted: number;
  /** When the first may be sent, or is worth asking again. */
  readonly at: Instant;
  /** From each granted request to the next. */
  readonly gapMs: number;
  /** It goes alone, and the others wait for what comes of it. */
  readonly isProbe: boolean;
  /** What time it was when the answer was made. */
  readonly now: Instant;
  /** Upstream has been failing or refusing: the next good answer is worth writing down. */
  readonly troubled: boolean;
};

/**
 * Takes requests: one statement, one round trip, exact under contention (the row stays locked to the end, and the time
 * is read after the lock was got). All that are granted lie in the same windows. Windows only move forward. Null when the
 * account has no row yet.
 */
export async function takeRequests(sql: SqlOrTransaction, t: TakeArgs): Promise<TakeRow | null> {
  const [row] = await sql<TakeRow[]>`
    with terms as materialized (
      select
        ${t.perMonth}::bigint as plan_month, ${t.perMonthFixed}::boolean as plan_month_fixed, ${t.perDay}::bigint as per_day,
        make_interval(secs => ${t.gapMs / 1000}::float8) as full_gap,
        make_interval(secs => ${t.runAheadMs / 1000}::float8) as run_ahead,
        make_interval(secs => ${t.graceMs / 1000}::float8) as grace,
        make_interval(secs => ${t.probeMs / 1000}::float8) as probe_wait,
        ${t.leaveMonth}::bigint as leave_month, ${t.leaveDay}::bigint as leave_day, ${t.asksAccount}::boolean as asks_account,
        ${t.wanted}::int as wanted,
        to_timestamp(${t.now === null ? null : t.now / 1000}::float8) as given_now
    ), locked as materialized (
      select * from ops.quota where account_id = ${t.accountId} for update
    ), clocked as materialized (
      select *, coalesce(given_now, clock_timestamp()) as now from locked, terms
    ), paced as materialized (
      select *,
        -- paceFactorAt of src/quota/pace.ts.
        full_gap * (1 + (pace_factor - 1)
          * power(2, -least(60, greatest(0, extract(epoch from now - limited_until)::float8 / 60)))) as gap,
        -- Further ahead than takes can have run: the clock was set back, and that must not stop us for the difference.
        case when next_free > now + run_ahead + 2 * grace + 32 * full_gap then now + run_ahead
          else greatest(now, next_free) end as earliest,
        case
          when not month_limit_known then plan_month
          when plan_month_fixed then least(month_limit, plan_month)
          else month_limit
        end as per_month
      from clocked
    ), placed as materialized (
      -- Not within the grace of a limited window's border, on either side: there, clocks disagree about where it counts.
      select *, greatest(
        earliest,
        case when per_day is not null then date_trunc('day', earliest + grace, 'UTC') + grace end,
        case when per_month is not null then date_trunc('month', earliest + grace, 'UTC') + grace end
      ) as send_at
      from paced
    ), windowed as materialized (
      select *,
        greatest(day_start, date_trunc('day', send_at, 'UTC')) as day,
        greatest(month_start, date_trunc('month', send_at, 'UTC')) as month
      from placed
    ), counted as materialized (
      select *,
        case when day_start = day then day_spent else 0 end as day_used,
        case when month_start = month then month_spent else 0 end as month_used
      from windowed
    ), judged as materialized (
      select *, case
        when month_used >= per_month then 'month'
        when day_used >= per_day then 'day'
        when spent_until > now and not asks_account then 'spent'
        when probe_until > now then coalesce(probe, 'unavailable')
        when down_until > now then 'unavailable'
        when limited_until > now then 'limited'
        when month_used + leave_month >= per_month then 'set aside month'
        when day_used + leave_day >= per_day then 'set aside day'
        when send_at > now + run_ahead then 'queue'
      end as denied
      from counted
    ), fitted as materialized (
      -- As many as stay in these windows, in sight, and away from the day's border; a probe goes alone. (least() passes nulls over.)
      select *, extract(epoch from gap)::float8 as gap_s, case
        when denied is not null then 0
        when probe is not null then 1
        else greatest(1, least(
          wanted,
          per_month - month_used - leave_month,
          per_day - day_used - leave_day,
          case when gap > interval '0' then
            1 + floor(extract(epoch from now + run_ahead - send_at) / extract(epoch from gap))
          end,
          case when gap > interval '0' then
            ceil(extract(epoch from day + interval '24 hours' - grace - send_at) / extract(epoch from gap))
          end))
        end::int as granted
      from judged
    ), taken as (
      update ops.quota q set
        next_free = j.send_at + j.gap * j.granted,
        day_start = j.day, day_spent = j.day_used + j.granted,
        month_start = j.month, month_spent = j.month_used + j.granted,
        probe_until = case when j.probe is not null then j.send_at + j.probe_wait else j.probe_until end
      from fitted j
      where j.denied is null and q.account_id = j.account_id
    ), noted as (
      insert into ops.quota_spent as s (account_id, month_start, class, name, month_spent, day_start, day_spent)
      select account_id, month, ${t.spenderClass}, ${t.spenderName}, granted, day, granted from fitted where denied is null
      on conflict (account_id, month_start, class, name) do update set
        month_spent = s.month_spent + excluded.month_spent,
        day_spent = case when s.day_start = excluded.day_start then s.day_spent else 0 end + excluded.day_spent,
        day_start = excluded.day_start
    )
    select
      case when denied like 'set aside%' then 'set aside' else denied end as denied, granted, gap_s * 1000 as "gapMs",
      (extract(epoch from case
        when denied is null then send_at
        when denied in ('month', 'set aside month')
          then (month at time zone 'UTC' + interval '1 month') at time zone 'UTC' + grace
        when denied in ('day', 'set aside day') then day + interval '24 hours' + grace
        when denied = 'queue' then send_at - run_ahead
        when denied = 'limited' then limited_until
        else greatest(
          case when denied = 'spent' then spent_until end,
          case when denied = 'unavailable' then down_until end,
          probe_until)
      end) * 1000)::float8 as at,
      (extract(epoch from coalesce(given_now, clock_timestamp())) * 1000)::float8 as now,
      probe is not null as "isProbe", down_streak > 0 or limited_streak > 0 or probe is not null as troubled
    from fitted`;
  return row ?? null;
}

/** What time the database has. */
export async function readDatabaseClock(sql: SqlOrTransaction): Promise<Instant> {
  const [row] = await sql<{ now: Instant }[]>`select ${msOf(sql, sql`clock_timestamp()`)} as now`;
  return row!.now;
}

/** Makes the account's row if there is none. */
export async function openLedger(sql: SqlOrTransaction, accountId: string): Promise<void> {
  await sql`insert into ops.quota (account_id) values (${accountId}) on conflict do nothing`;
}

/** What is written down of an account, as it stands; instants that are long past say "nothing to wait for". */
export type Ledger = {
  readonly nextFree: Instant;
  readonly dayStart: Instant;
  readonly daySpent: number;
  readonly monthStart: Instant;
  readonly monthSpent: number;
  /** What upstream says the month allows; null = no limit, or not known. */
  readonly monthLimit: number | null;
  readonly monthLimitKnown: boolean;
  /** ≥ 1: how many times slower than the plan, at `limitedUntil`. */
  readonly paceFactor: number;
  /** When the factor was last changed. */
  readonly limitedAt: Instant;
  readonly limitedUntil: Instant;
  readonly limitedStreak: number;
  readonly limitedMessage: string;
  readonly spentUntil: Instant;
  readonly spentMessage: string;
  /** When the streak last grew. */
  readonly downAt: Instant;
  readonly downUntil: Instant;
  readonly downStreak: number;
  readonly downMessage: string;
  /** Why the next request goes alone. */
  readonly probe: 'unavailable' | 'spent' | null;
  /** Until when the others wait for a probe that is under way. */
  readonly probeUntil: Instant | null;
};

/** The account's row and what time it is there; a row that was never written is an empty one. */
export async function readLedger(
  sql: SqlOrTransaction,
  at: At,
  lock = false,
): Promise<{ readonly ledger: Ledger; readonly now: Instant }> {
  const [row] = await sql<(Ledger & { now: Instant })[]>`
    select ${ledgerColumns(sql)}, ${msOf(sql, nowOf(sql, at))} as now
    from ops.quota where account_id = ${at.accountId} ${lock ? sql`for update` : sql``}`;
  if (row) {
    const { now, ...ledger } = row;
    return { ledger, now };
  }
  await openLedger(sql, at.accountId);
  return readLedger(sql, at, lock);
}

/**
 * Writes down what upstream said: reads the row, locked, and puts back what `change` makes of it. The next free instant and
 * the day's count belong to `takeRequests` and stay.
 */
export async function changeLedger(
  sql: Sql,
  at: At,
  change: (ledger: Ledger, now: Instant) => Ledger,
): Promise<Ledger> {
  return (await sql.begin(async (tx) => {
    const { ledger, now } = await readLedger(tx, at, true);
    const next = change(ledger, now);
    const time = (ms: Instant) => tx`to_timestamp(${ms / 1000}::float8)`;
    await tx`
      update ops.quota set
        month_start = ${time(next.monthStart)}, month_spent = ${next.monthSpent},
        month_limit = ${next.monthLimit}, month_limit_known = ${next.monthLimitKnown},
        pace_factor = ${next.paceFactor}, limited_at = ${time(next.limitedAt)}, limited_until = ${time(next.limitedUntil)},
        limited_streak = ${next.limitedStreak}, limited_message = ${next.limitedMessage},
        spent_until = ${time(next.spentUntil)}, spent_message = ${next.spentMessage},
        down_at = ${time(next.downAt)}, down_until = ${time(next.downUntil)},
        down_streak = ${next.downStreak}, down_message = ${next.downMessage},
        probe = ${next.probe}, probe_until = ${next.probeUntil === null ? null : time(next.probeUntil)}
      where account_id = ${at.accountId}`;
    return next;
  })) as Ledger;
}

export type SpenderRow = {
  readonly class: 'scheduled' | 'backfill';
  readonly name: string;
  readonly day: number;
  readonly month: number;
};

/** Who spent how much of the month and day the ledger is in, most first. */
export function readSpenders(sql: SqlOrTransaction, at: At): Promise<readonly SpenderRow[]> {
  return sql<SpenderRow[]>`
    select class, name, month_spent as month,
      case when day_start = date_trunc('day', now, 'UTC') then day_spent else 0 end as day
    from ops.quota_spent, (select ${nowOf(sql, at)} as now) t
    where account_id = ${at.accountId} and month_start = date_trunc('month', now, 'UTC')
    order by month_spent desc, class, name`;
}

function ledgerColumns(sql: SqlOrTransaction) {
  const ms = (column: string) => msOf(sql, sql(column));
  return sql`
    ${ms('next_free')} as "nextFree", ${ms('day_start')} as "dayStart", day_spent as "daySpent",
    ${ms('month_start')} as "monthStart", month_spent as "monthSpent",
    month_limit as "monthLimit", month_limit_known as "monthLimitKnown",
    pace_factor as "paceFactor", ${ms('limited_at')} as "limitedAt", ${ms('limited_until')} as "limitedUntil",
    limited_streak as "limitedStreak", limited_message as "limitedMessage",
    ${ms('spent_until')} as "spentUntil", spent_message as "spentMessage",
    ${ms('down_at')} as "downAt", ${ms('down_until')} as "downUntil", down_streak as "downStreak",
    down_message as "downMessage", probe, ${ms('probe_until')} as "probeUntil"`;
}

type Fragment = ReturnType<SqlOrTransaction>;

function msOf(sql: SqlOrTransaction, time: unknown): Fragment {
  return sql`(extract(epoch from ${time as Fragment}) * 1000)::float8`;
}

/** `clock_timestamp()`, not `now()`: that is when the transaction began, before it waited for the row. */
function nowOf(sql: SqlOrTransaction, { now }: At): Fragment {
  return now === null ? sql`clock_timestamp()` : sql`to_timestamp(${now / 1000}::float8)`;
}
