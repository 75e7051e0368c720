/** Reads from the tables the conditions of which an operator is notified. This is cheap enough for every half minute. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import { ANOTHER_BACKFILL, NOT_FINAL_YET } from '../../store/backfill/slot-owner.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** A history limit of the plan, as the upstream stated it. */
export type MetLimit = {
  readonly interval: Interval;
  /** How far back the plan shows history; null when it does not include the interval. */
  readonly depthMs: number | null;
  /** The message of the upstream. */
  readonly message: string;
};

/** A tier whose series the quota does not keep as fresh as wanted. */
export type LateTier = {
  readonly tier: Tier;
  readonly interval: Interval;
  readonly targetAgeMs: number;
  /** Null: with this plan they cannot be kept fresh at all. */
  readonly achievableAgeMs: number | null;
};

/** A backfill of the service that has ended. */
export type EndedBackfill = {
  readonly id: number;
  readonly state: 'done' | 'failed';
  readonly interval: Interval;
  readonly quote: Quote;
  readonly coins: number;
  readonly from: Instant;
  readonly to: Instant;
  readonly requestedAt: Instant;
  readonly finishedAt: Instant;
  readonly message: string | null;
  /** True: a person requested it, not the service itself. */
  readonly isWanted: boolean;
  /** For a failed backfill of the past: when the first backfill failed of those that fail for the same reason, day after day. Else null. */
  readonly failingSince: Instant | null;
};

export type AlertInputs = {
  /** History limits that a request met under `plan` since `since`. */
  readonly historyLimits: readonly MetLimit[];
  /** The upstream changed more final candles than `revisionsADay` since `since`. */
  readonly isRevisedOften: boolean;
  /** Rows quarantined after the one with id `quarantineAfter`, and the most frequent reasons; null when there are none. */
  readonly quarantined: { readonly rows: number; readonly upto: number; readonly reasons: readonly string[] } | null;
  /** When the upstream last answered or refused a request for candles; null: never. */
  readonly candlesAt: Instant | null;
  /** Why the last request failed; null when it succeeded. */
  readonly lastFailure: string | null;
  /** Requests were sent, and none was ever answered. */
  readonly isUnreached: boolean;
  /** Backfills of the service that are queued or running, without those that have nothing to request before a known time. */
  readonly backfills: number;
  /** Tracked series that are due. */
  readonly dueSeries: number;
  /** The last successful tick of each schedule. */
  readonly doneTicks: ReadonlyMap<string, Instant>;
  /** Highest priority first. */
  readonly lateTiers: readonly LateTier[];
  /** Backfills that ended since `since`, the earliest first. Those that the service itself requested are included only if they failed. */
  readonly endedBackfills: readonly EndedBackfill[];
};

type AlertInputsQuery = {
  readonly now: Instant;
  readonly plan: string;
  readonly schedules: readonly string[];
  /** Earlier events are not reported. */
  readonly since: Instant;
  readonly revisionsADay: number;
  /** Null: rows seen since `since`. */
  readonly quarantineAfter: number | null;
};

/** The last answer is searched for among this many requests. */
const LOOK_BACK = 20_000;
const MOST_REASONS = 3;
/** At most this many are reported at once, because each is a notice. */
const MOST_BACKFILLS = 5_000;
/** Maximum number of rows that are counted. */
const MOST_ROWS = 10_000;

export async function readAlertInputs(sql: Sql, query: AlertInputsQuery): Promise<AlertInputs> {
  const { now, plan, since, revisionsADay, quarantineAfter } = query;
  // One after the other, on one connection, because no client waits for the answer.
  const historyLimits = await sql<MetLimit[]>`
    select interval, (extract(epoch from depth) * 1000)::float8 as depth_ms, message from market.refusal
    where account_plan = ${plan} and series_id is null and refused_at > ${since} order by interval`;
  const revised = await sql`
    select from (
      select seen_at from market.revision where reason <> 'mended' order by id desc offset ${revisionsADay} limit 1) r
    where seen_at > ${since}`;
  const [found] = await sql<{ rows: number; upto: number | null; reasons: string[] | null }[]>`
    with recent as materialized (
      select id, reason from market.quarantine
      where id > coalesce(${quarantineAfter}::bigint, (
        select id from market.quarantine where seen_at <= ${since} order by id desc limit 1), 0)
      order by id desc limit ${MOST_ROWS}
    )
    select (select count(*) from recent)::int as rows, (select max(id) from recent) as upto, (select array_agg(reason) from (
      select reason from recent group by reason order by count(*) desc, reason limit ${MOST_REASONS}) r) as reasons`;
  const [candles] = await sql<{ at: Instant | null }[]>`
    select (
      select sent_at from ops.fetch where id > (select max(id) from ops.fetch) - ${LOOK_BACK} and series_id is not null
        and outcome not in ('unavailable', 'limited', 'malformed') order by id desc limit 1) as at`;
  const [last] = await sql<{ outcome: string; message: string | null }[]>`
    select outcome, message from ops.fetch order by id desc limit 1`;
  const [reached] = await sql<{ isUnreached: boolean }[]>`
    select exists (select from ops.fetch) and not exists (select from ops.fetch where status is not null) as is_unreached`;
  const [work] = await sql<{ backfills: number; dueSeries: number }[]>`
    select (select count(*) from ops.backfill where is_detached and (state = 'running' or state = 'queued' and not coalesce(
        -- A longer wait was recorded before a clock was set back.
        wait_until > ${now}::timestamptz and wait_until <= ${now}::timestamptz + interval '1 day'
          and message in (${NOT_FINAL_YET}, ${ANOTHER_BACKFILL}), false)))::int as backfills,
      (select count(*) from ops.tracked where queued_at is not null)::int as due_series`;
  const done = await sql<{ schedule: string; tick: Instant }[]>`
    select r.schedule, r.tick from unnest(${query.schedules as string[]}::text[]) s(name)
    cross join lateral (
      select schedule, tick from ops.schedule_run where schedule = s.name and state = 'done' order by id desc limit 1
    ) r`;
  const lateTiers = await sql<LateTier[]>`
    select k.tier, k.interval, (extract(epoch from k.target_age) * 1000)::float8 as target_age_ms,
      (extract(epoch from k.achievable_age) * 1000)::float8 as achievable_age_ms
    from ops.tier k
    -- The age that is promised includes the wait for the next run. With any number of requests, a series still waits for one run after another, and
    -- answers about whole days come once a day.
    cross join lateral (select coalesce(k.achievable_age - k.refresh_after, '0') as wait) w
    where k.planned_at is not null and (k.achievable_age is null or k.achievable_age
        > greatest(k.target_age, 2 * w.wait, case when k.target_age >= '1 day' then '1 day' + w.wait end))
      and exists (select from ops.tracked tr where tr.tier_id = k.id and tr.ends_at is null)
      -- Series that the plan does not include do not lack requests. Chandler reports them as a history limit.
      and not exists (
        select from market.refusal r
        where r.series_id is null and r.account_plan = ${plan} and r.interval = k.interval and r.reason = 'interval')
    order by k.priority desc, k.id`;
  return {
    historyLimits,
    isRevisedOften: revised.length > 0,
    quarantined: found!.upto === null ? null : { rows: found!.rows, upto: found!.upto, reasons: found!.reasons ?? [] },
    candlesAt: candles!.at,
    lastFailure: last === undefined || last.outcome === 'stored' ? null : last.message,
    ...reached!,
    ...work!,
    lateTiers,
    endedBackfills: await readEndedBackfills(sql, since),
    doneTicks: new Map(done.map(({ schedule, tick }) => [schedule, tick])),
  };
}

/** A backfill of the past that was requested within this time after a failed one continues its failures: the audit of gaps retries each day. */
const SAME_HISTORY = '3 days';

/** The reason of a failed row of `ops.backfill`, without numbers and plurals, because 3 slots of today are 2 slots tomorrow. */
export function reasonOf(sql: Sql) {
  return sql`regexp_replace(coalesce(message, ''), '[0-9]+|s\\M', '', 'g')`;
}

/** Whether a person requested a row of `ops.backfill`: only a person is `user@host`. */
export function isWantedByPerson(sql: Sql) {
  return sql`coalesce(requested_by like '%@%', true)`;
}

/** There are few backfills. `requested_by` marks those that the service itself requests: only a person is `user@host`. */
async function readEndedBackfills(sql: Sql, since: Instant): Promise<EndedBackfill[]> {
  return sql<EndedBackfill[]>`
    with failed as (
      select id, interval, quote, requested_at, finished_at, ${reasonOf(sql)} as reason
      from ops.backfill where is_detached and state = 'failed' and spec ? 'history'
    ), begun as (
      select *, coalesce(requested_at > lag(finished_at) over same_reason + ${SAME_HISTORY}::interval, true) as is_first
      from failed window same_reason as (partition by interval, quote, reason order by finished_at, id)
    ), in_a_row as (
      select id, max(finished_at) filter (where is_first) over (partition by interval, quote, reason order by finished_at, id) as since
      from begun
    )
    select b.id, b.state, b.interval, b.quote, cardinality(b.coin_ids) as coins, lower(b.span) as from, upper(b.span) as to, b.requested_at,
      b.finished_at, b.message, w.is_wanted, r.since as failing_since
    from ops.backfill b cross join lateral (select ${isWantedByPerson(sql)} as is_wanted) w left join in_a_row r on r.id = b.id
    -- Backfills that the service created itself are news only when they fail.
    where b.is_detached and (b.state = 'failed' or (b.state = 'done' and w.is_wanted)) and b.finished_at > ${since}
    order by b.finished_at limit ${MOST_BACKFILLS}`;
}
