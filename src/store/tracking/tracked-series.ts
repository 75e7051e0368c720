/** The tracked series: the tier of each one, when it was last requested, and the instant up to which the upstream has sent all its data. */
import { and, isNotNull } from 'drizzle-orm';
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import type { Spans } from '../../core/span.ts';
import { stillRefused } from '../candle/gaps.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import type { series } from '../schema/candles.ts';
import { type tier, tracked } from '../schema/tracking.ts';

type Tier = Readonly<typeof tier.$inferSelect>;
type Series = Readonly<typeof series.$inferSelect>;

type RefreshCandidateRow = Pick<Tier, 'priority'> & {
  readonly seriesId: number;
  readonly tierId: number;
  readonly achievableAgeMs: number;
  readonly refreshAfterMs: number;
  /** The refresh time for which it waits; null when it was never requested. */
  readonly dueAt: Instant | null;
  /** The last refresh time; null when it had none. */
  readonly refreshAt: Instant | null;
  readonly rank: number;
};

/** The instant from which `refresh_after` counts, in SQL: the last refresh time, or earlier if the last answer was not final. */
function dueOf(sql: SqlOrTransaction) {
  return sql`least(tr.asked_at, tr.refresh_at)`;
}

/**
 * For each tier:
 * - at most `limit` due series, the longest due first;
 * - at most `limit` that were requested in the future (the clock was set back since): their age is unknown, so they count as due;
 * - at most `limit` that were never requested, best rank first.
 *
 * An ended series waits until its last candle can be final. Each part reads an index, so the cost depends on the limit and the number
 * of tiers, not on the number of series (except series that were never requested).
 */
export async function readRefreshCandidates(
  sql: SqlOrTransaction,
  { now, limit }: { readonly now: Instant; readonly limit: number },
): Promise<RefreshCandidateRow[]> {
  const at = sql`${now}::timestamptz`;
  const isOpen = sql`(ends_at is null or ends_at + tier.width <= ${at})`;
  return sql<RefreshCandidateRow[]>`
    with tier as (
      select k.id, k.priority, k.achievable_age as age, coalesce(k.refresh_after, k.achievable_age) as after,
        market.width_of(k.interval) as width
      from ops.tier k where k.achievable_age is not null
    ), next as (
      select tier.*, tr.series_id, ${dueOf(sql)} + tier.after as due_at, tr.refresh_at, 0 as rank
      from tier cross join lateral (
        (select series_id, asked_at, refresh_at from ops.tracked
          where tier_id = tier.id and asked_at <= ${at} - tier.after and ${isOpen} order by asked_at limit ${limit})
        union
        (select series_id, asked_at, refresh_at from ops.tracked
          where tier_id = tier.id and refresh_at <= ${at} - tier.after and ${isOpen} order by refresh_at limit ${limit})
        union
        (select series_id, ${at} - tier.after, refresh_at from ops.tracked
          where tier_id = tier.id and asked_at > ${now + MOST_SKEW_MS} and ${isOpen} order by asked_at limit ${limit})
      ) tr
      union all
      select tier.*, tr.series_id, null, null, tr.rank
      from tier cross join lateral (
        select new.series_id, c.rank from ops.tracked new
        join market.series s on s.id = new.series_id join market.coin c on c.id = s.coin_id
        where new.tier_id = tier.id and new.asked_at is null and ${isOpen}
        order by nullif(c.rank, 0) nulls last, new.series_id limit ${limit}
      ) tr
    )
    select series_id, id as tier_id, priority, rank,
      (extract(epoch from age) * 1000)::float8 as achievable_age_ms,
      (extract(epoch from after) * 1000)::float8 as refresh_after_ms, due_at, refresh_at
    from next`;
}

type MissingOfSeries = Pick<Series, 'coinId' | 'quote' | 'interval'> & {
  readonly seriesId: number;
  /**
   * Spans that are wanted up to the end of the candle that is open now, and neither covered nor refused to this plan. They include the newest
   * slots, unless the series has ended.
   */
  readonly missing: Spans;
};

/** The missing spans in the order of `ids`, limited to the newest `slots` slots of each series. */
export async function readMissing(
  sql: SqlOrTransaction,
  {
    ids,
    now,
    plan,
    slots,
  }: {
    readonly ids: readonly number[];
    readonly now: Instant;
    readonly plan: string;
    readonly slots: { readonly candles: number; readonly prices: number };
  },
): Promise<MissingOfSeries[]> {
  const rows = await sql<MissingOfSeries[]>`
    select s.id as series_id, s.coin_id, s.quote, s.interval, (
        s.wanted * tstzmultirange(tstzrange(greatest(w.earliest, w.began), w.until)) - s.covered
        - coalesce((select range_agg(r.span) from market.refusal r where r.series_id = s.id and r.account_plan = ${plan}
            and ${stillRefused(sql, now)}), '{}')
        -- Requests the newest end before it can be final, to be fresh. Requests a series that ends only when its answer may be final.
        - coalesce((select range_agg(p.span) from ops.tracked tr join ops.second_opinion p on p.series_id = tr.series_id
            where tr.series_id = s.id and tr.ends_at is not null and p.retry_at > ${now}), '{}')
      ) as missing
    from unnest(${ids as number[]}::int[]) with ordinality as asked(id, position)
    join market.series s on s.id = asked.id
    join market.coin c on c.id = s.coin_id
    cross join lateral (
      select date_bin(x.width, c.first_data_at, 'epoch') as began, x.until, x.until - case when s.interval > '24h' then ${slots.prices}::int else ${slots.candles}::int end * x.width as earliest
      from (select v.width,
          date_bin(v.width, greatest(${now}, c.first_data_at) + v.width - interval '1 microsecond', 'epoch') as until
        from (select market.width_of(s.interval) as width) v) x
    ) w
    order by asked.position`;
  return rows;
}

type Refresh = {
  readonly seriesId: number;
  readonly askedAt: Instant;
  /** The last refresh time: the next one is `refreshAfterMs` later. */
  readonly refreshAt: Instant;
  /** True when a chunk of the series goes into the queue. */
  readonly isQueued: boolean;
};

/** Records that these series were refreshed, before the outcome is known: a series that fails must not be the next one again. */
export async function recordRefreshes(sql: SqlOrTransaction, refreshes: readonly Refresh[]): Promise<void> {
  if (refreshes.length === 0) return;
  await sql`
    with given as (
      select * from unnest(${refreshes.map((a) => a.seriesId)}::int[], ${refreshes.map((a) => a.askedAt)}::timestamptz[],
        ${refreshes.map((a) => a.refreshAt)}::timestamptz[], ${refreshes.map((a) => String(a.isQueued))}::text[]::bool[])
        as g(id, asked_at, refresh_at, is_queued)
    ), locked as (
      select tr.series_id from ops.tracked tr join given g on g.id = tr.series_id order by tr.series_id for update of tr
    )
    update ops.tracked tr set asked_at = g.asked_at, refresh_at = g.refresh_at, queued_at = case when g.is_queued then g.asked_at end
    from given g join locked l on l.series_id = g.id where tr.series_id = g.id`;
}

/** Records that the chunk of this series has ended, with any outcome: the queue need not contain it any more. */
export async function markEnded(sql: SqlOrTransaction, seriesId: number): Promise<void> {
  await tables(sql)
    .update(tracked)
    .set({ queuedAt: null })
    .where(and(matches(tracked, { seriesId }), isNotNull(tracked.queuedAt)));
}

/**
 * Records that the chunk of this series has ended with an answer that is not final. The series is due again at `dueAt`, or at its next refresh
 * time if that is earlier. Its refresh times do not move.
 */
export async function markDueAgain(sql: SqlOrTransaction, seriesId: number, dueAt: Instant): Promise<void> {
  await sql`
    update ops.tracked tr set queued_at = null,
      asked_at = ${dueAt}::timestamptz - coalesce(k.refresh_after, k.achievable_age, k.target_age)
    from ops.tier k
    where tr.series_id = ${seriesId} and tr.queued_at is not null and k.id = tr.tier_id`;
}

/**
 * Undoes the refresh of these series, because the queue lost their chunks. They get the age of their last answer again, so they are soon due. If
 * an answer came after the refresh, the refresh stays. Resolves to the number of undone refreshes.
 */
export async function undoRefreshes(sql: SqlOrTransaction, seriesIds: readonly number[]): Promise<number> {
  if (seriesIds.length === 0) return 0;
  const rows = await sql<{ isBack: boolean }[]>`
    with behind as (
      select series_id, seen_until is null or seen_until < asked_at - interval '15 minutes' as is_back from ops.tracked
      where series_id = any(${seriesIds as number[]}::int[]) for update
    )
    update ops.tracked tr set queued_at = null, asked_at = case when b.is_back then tr.seen_until else tr.asked_at end
    from behind b where tr.series_id = b.series_id returning b.is_back`;
  return rows.filter((row) => row.isBack).length;
}

/**
 * Series whose chunk was put into the queue before `before` and has not ended. If the queue no longer contains the chunk, the caller undoes the
 * refresh with `undoRefreshes`. (An answer from a cache is some minutes older than its request, so an answer alone proves little.)
 */
export async function readQueued(sql: SqlOrTransaction, before: Instant, limit: number): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select series_id as id from ops.tracked
    where queued_at < ${before} or queued_at > ${before + MOST_SKEW_MS}
    order by queued_at, series_id limit ${limit}`;
  return rows.map((row) => row.id);
}

/** The number of series with a chunk in the queue: requests that will be sent soon, and are not counted yet. */
export async function countQueued(sql: SqlOrTransaction): Promise<number> {
  return tables(sql).$count(tracked, isNotNull(tracked.queuedAt));
}

/** Tracked series of one tier that are due at the same instant. */
export type ComingRefreshes = Pick<Tier, 'priority' | 'interval'> & {
  readonly tierId: number;
  readonly refreshAfterMs: number;
  readonly achievableAgeMs: number;
  /** Null when they were never requested. */
  readonly dueAt: Instant | null;
  readonly series: number;
  /** The part of `series` whose chunk is in the queue. */
  readonly queued: number;
  /** The part of `series` that has been tracked only since midnight UTC. */
  readonly isNew: number;
};

/**
 * When the tracked series are due, with the ages of the current plan. Ended series are left out until their last candle can be final. Instants
 * are rounded up to `withinMs` or to the step of refresh times (`refreshStepMs`), so there are few rows even for many series.
 */
export async function readComingRefreshes(
  sql: SqlOrTransaction,
  { now, withinMs = 0 }: { readonly now: Instant; readonly withinMs?: number },
): Promise<ComingRefreshes[]> {
  return sql<ComingRefreshes[]>`
    with planned as (
      select k.id, k.priority, k.interval, market.width_of(k.interval) as width,
        extract(epoch from coalesce(k.refresh_after, k.achievable_age))::float8 as after_s,
        (extract(epoch from k.achievable_age) * 1000)::float8 as achievable_age_ms
      from ops.tier k where k.achievable_age is not null
    ), tier as (
      select planned.*, make_interval(secs => after_s) as after, make_interval(secs => step_s) as step,
        -- The steps are counted from here: one ends at each instant at which a series may be due.
        to_timestamp(-after_s) + interval '1 microsecond' as origin
      from planned, lateral (select greatest(${withinMs / 1000}::float8, case when after_s >= 6000 then 60 else 1 end) as step_s) s
    )
    select tier.id as tier_id, tier.priority, tier.interval, tier.after_s * 1000 as refresh_after_ms, tier.achievable_age_ms,
      d.step + tier.step - interval '1 microsecond' + tier.after as due_at, d.series, d.queued, d.is_new
    from tier cross join lateral (
      select date_bin(tier.step, ${dueOf(sql)}, tier.origin) as step, count(*) as series, count(tr.queued_at) as queued,
        count(*) filter (where tr.tracked_at >= date_trunc('day', ${now}::timestamptz, 'UTC')) as is_new
      from ops.tracked tr
      where tr.tier_id = tier.id and (tr.ends_at is null or tr.ends_at + tier.width <= ${now}::timestamptz)
      group by 1
    ) d
    order by due_at nulls last`;
}

/** Does not count ended series. */
export async function countTrackedSeries(sql: SqlOrTransaction): Promise<number> {
  return tables(sql).$count(tracked, matches(tracked, { endsAt: null }));
}
