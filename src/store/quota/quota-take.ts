/** Takes requests from the ledger's row: one statement takes them from every window or from none. */
import type { Instant } from '../../clock.ts';
import type { Spans } from '../../core/span.ts';
import { type OpenGapsQuery, openGaps } from '../candle/gaps.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange } from '../values/multirange.ts';
import type { At } from './quota.ts';

export type TakeArgs = At & {
  /** Requests wanted without a check of gaps. As many as fit are granted, one after the other. */
  readonly wanted: number;
  /** One more request for each of `stretches` of which a part is still worth a request, at `now` and under `plan`. */
  readonly ifOpen: {
    readonly stretches: readonly OpenGapsQuery[];
    readonly now: Instant;
    readonly plan: string;
  } | null;
  readonly perMonth: number | null;
  /** True when the operator set `perMonth`: the upstream's limit may lower it but not raise it. */
  readonly perMonthFixed: boolean;
  readonly perDay: number | null;
  /** Milliseconds between two requests at the full rate; 0 without a limit. */
  readonly gapMs: number;
  readonly runAheadMs: number;
  readonly graceMs: number;
  /** Milliseconds until a probe without an answer is given up. Until then the other processes look for its outcome each second. */
  readonly probeMs: number;
  /** Requests that must be left in the window after this take. */
  readonly leaveMonth: number;
  readonly leaveDay: number;
  /** True for a request that ignores the hold of an exhausted window, and a month that others have used up. */
  readonly isAccountRequest: boolean;
  /** True for a request that is never the probe, because it goes to another host. */
  readonly isOtherHost: boolean;
  readonly spenderClass: string;
  readonly spenderName: string;
};

export type TakeRow = {
  /** The reason of a denial; null = granted. */
  readonly denied: 'month' | 'day' | 'reserved' | 'queue' | 'limited' | 'quota exhausted' | 'unavailable' | null;
  /** 0 when denied, or when no request was wanted; else from 1 to the number wanted. */
  readonly granted: number;
  /** When the first request may be sent or, after a denial, when to try again. */
  readonly at: Instant;
  /** Milliseconds from each granted request to the next. */
  readonly gapMs: number;
  /** True for a probe: it goes alone, and the other processes wait for its outcome. */
  readonly isProbe: boolean;
  /** The time of the ledger's clock in this statement. */
  readonly now: Instant;
  /** True when the row contains failures or refusals of the upstream: the next good answer must be recorded. */
  readonly isBackingOff: boolean;
  /** For each of `ifOpen.stretches`, in the same order: the parts that are worth a request. */
  readonly gaps: readonly Spans[];
};

/**
 * Takes requests in one statement and one round trip. It is exact under contention: the statement locks the row to its end, and reads
 * the time after it has the lock. All granted requests lie in the same windows. Windows only move forward. Null when the account has no
 * row yet.
 */
export async function takeRequests(sql: SqlOrTransaction, t: TakeArgs): Promise<TakeRow | null> {
  const { ifOpen } = t;
  const [row] = await sql<(Omit<TakeRow, 'gaps'> & { gaps: string[] | null })[]>`
    with ${ifOpen === null ? sql`` : sql`open as materialized (${openGaps(sql, ifOpen.stretches, ifOpen)}),`}
    ${locked(sql, t)}, ${windows(sql)}, ${verdict(sql)}, ${writes(sql, t)}
    select
      case when denied like 'reserved%' then 'reserved' else denied end as denied, granted, gap_s * 1000 as gap_ms,
      case
        when denied is null then send_at
        when denied in ('month', 'reserved month')
          then (month at time zone 'UTC' + interval '1 month') at time zone 'UTC' + grace
        when denied in ('day', 'reserved day') then day + interval '24 hours' + grace
        when denied = 'queue' then send_at - run_ahead
        when denied = 'limited' then limited_until
        else greatest(
          case when denied = 'quota exhausted' then exhausted_until end,
          case when denied = 'unavailable' then down_until end,
          -- The probe may be answered long before it is given up.
          case when probe_until > now then least(probe_until, now + interval '1 second') end)
      end as at,
      coalesce(given_now, clock_timestamp()) as now,
      is_probe, is_backing_off,
      ${ifOpen === null ? sql`null::jsonb` : sql`(select jsonb_agg(gaps::text order by position) from open)`} as gaps
    from fitted`;
  return row ? { ...row, gaps: (row.gaps ?? []).map(parseMultirange) } : null;
}

/** `terms`: the wanted number and the terms. `locked`: the account's row. */
function locked(sql: SqlOrTransaction, t: TakeArgs) {
  return sql`
    terms as materialized (
      select
        ${t.perMonth}::bigint as plan_month, ${t.perMonthFixed}::boolean as plan_month_fixed, ${t.perDay}::bigint as per_day,
        make_interval(secs => ${t.gapMs / 1000}::float8) as full_gap,
        make_interval(secs => ${t.runAheadMs / 1000}::float8) as run_ahead,
        make_interval(secs => ${t.graceMs / 1000}::float8) as grace,
        make_interval(secs => ${t.probeMs / 1000}::float8) as probe_wait,
        ${t.leaveMonth}::bigint as leave_month, ${t.leaveDay}::bigint as leave_day, ${t.isAccountRequest}::boolean as asks_account,
        ${t.isOtherHost}::boolean as is_other_host,
        ${t.wanted}::int ${t.ifOpen === null ? sql`` : sql`+ (select count(*) from open where not isempty(gaps))::int`} as wanted,
        ${t.now}::timestamptz as given_now
    ), locked as materialized (
      -- Postgres evaluates "wanted" before it locks the row, so other takes do not wait meanwhile.
      select * from ops.quota
      where account_id = (select ${t.accountId}::text from terms where wanted >= 0)
      for update
    )`;
}

/** `counted`: when the first request may be sent, and how many requests of that day and that month are used. */
function windows(sql: SqlOrTransaction) {
  return sql`
    clocked as materialized (
      select *, coalesce(given_now, clock_timestamp()) as now from locked, terms
    ), paced as materialized (
      select *,
        -- Same as slowdownAt in src/quota/adaptive-rate.ts.
        full_gap * (1 + (pace_factor - 1)
          * power(2, -least(60, greatest(0, extract(epoch from now - limited_until)::float8 / 60)))) as gap,
        -- Further ahead than takes can run: the clock was set back. Takes must not wait for the difference.
        case when next_free > now + run_ahead + 2 * grace + 32 * full_gap then now + run_ahead
          else greatest(now, next_free) end as earliest,
        case
          when not month_limit_known then plan_month
          when plan_month_fixed then least(month_limit, plan_month)
          else month_limit
        end as per_month
      from clocked
    ), placed as materialized (
      -- Keeps the grace away from the border of a limited window, on both sides: near it, clocks disagree about the window.
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
    )`;
}

/** `fitted`: why no request may be sent, or how many fit. */
function verdict(sql: SqlOrTransaction) {
  return sql`
    exempted as materialized (
      -- When the upstream reported that others have used up the month, only the request about the account finds out that there is
      -- more again (a larger plan). It is denied when we used up the month ourselves, and beyond the operator's limit.
      select *, asks_account and month_limit_known
        and (not plan_month_fixed or plan_month is null or month_used < plan_month)
        and coalesce((
          select sum(s.month_spent) from ops.quota_spent s where s.account_id = counted.account_id and s.month_start = counted.month
        ), 0) < per_month as is_told
      from counted
    ), seen as materialized (
      select *, down_streak > 0 or limited_streak > 0 or probe is not null as is_backing_off,
        probe is not null and not is_other_host as is_probe
      from exempted
    ), judged as materialized (
      select *, case
        when month_used >= per_month and not is_told then 'month'
        when day_used >= per_day then 'day'
        when exhausted_until > now and not asks_account then 'quota exhausted'
        when probe_until > now then case probe when 'exhausted' then 'quota exhausted' else 'unavailable' end
        when down_until > now then 'unavailable'
        when limited_until > now then 'limited'
        when month_used + leave_month >= per_month and not is_told then 'reserved month'
        when day_used + leave_day >= per_day then 'reserved day'
        when send_at > now + run_ahead then 'queue'
      end as denied
      from seen
    ), fitted as materialized (
      -- As many as fit into these windows and the run-ahead, away from the day's border. A probe goes alone. (least() ignores nulls.)
      select *, extract(epoch from gap)::float8 as gap_s, case
        when denied is not null or wanted = 0 then 0
        when is_probe then 1
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
    )`;
}

/** Counts the granted requests in the account's row and for the spender. */
function writes(sql: SqlOrTransaction, t: TakeArgs) {
  return sql`
    taken as (
      update ops.quota q set
        next_free = j.send_at + j.gap * j.granted,
        day_start = j.day, day_spent = j.day_used + j.granted,
        month_start = j.month, month_spent = j.month_used + j.granted,
        probe_until = case when j.is_probe then j.send_at + j.probe_wait else j.probe_until end
      from fitted j
      where j.granted > 0 and q.account_id = j.account_id
    ), noted as (
      insert into ops.quota_spent as s (account_id, month_start, class, name, month_spent, day_start, day_spent)
      select account_id, month, ${t.spenderClass}, ${t.spenderName}, granted, day, granted from fitted where granted > 0
      on conflict (account_id, month_start, class, name) do update set
        month_spent = s.month_spent + excluded.month_spent,
        day_spent = case when s.day_start = excluded.day_start then s.day_spent else 0 end + excluded.day_spent,
        day_start = excluded.day_start
    )`;
}
