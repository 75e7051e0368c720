/** How fresh the tracked series of each tier are. */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';

export type TierStatus = {
  readonly tier: Tier;
  readonly interval: Interval;
  readonly priority: number;
  readonly series: number;
  /** Of these, series that no rule wants any more; their newest candles are being completed. */
  readonly ending: number;
  /** Of these, series without an answer since they were tracked: they have no age. */
  readonly unseen: number;
  readonly targetAgeMs: number;
  /** Null: not planned yet, or not with this budget and plan. */
  readonly achievableAgeMs: number | null;
  readonly isPlanned: boolean;
  readonly keepsUp: boolean;
  /** The median and the highest age of the series that are kept fresh. */
  readonly medianAgeMs: number | null;
  readonly oldestAgeMs: number | null;
};

/** Highest priority first. */
export async function readTierStatus(sql: SqlOrTransaction, now: Instant): Promise<TierStatus[]> {
  return sql<TierStatus[]>`
    select k.tier, k.interval, k.priority, k.keeps_up, k.planned_at is not null as is_planned,
      t.series, t.ending, t.unseen,
      (extract(epoch from k.target_age) * 1000)::float8 as target_age_ms,
      (extract(epoch from k.achievable_age) * 1000)::float8 as achievable_age_ms,
      ${ageAt(sql, 't.median_until', now)} as median_age_ms, ${ageAt(sql, 't.oldest_until', now)} as oldest_age_ms
    from ops.tier k
    -- Computes ages for the result rows only: there may be millions of series.
    join (
      select tier_id, count(*) as series, count(ends_at) as ending,
        count(*) filter (where seen_until is null and ends_at is null) as unseen,
        percentile_disc(0.5) within group (order by seen_until desc) filter (where ends_at is null) as median_until,
        min(seen_until) filter (where ends_at is null) as oldest_until
      from ops.tracked group by tier_id
    ) t on t.tier_id = k.id
    order by k.priority desc, k.tier = 'all', k.tier = 'top', k.interval desc, k.target_age, k.id`;
}

/** The age in milliseconds; null when the column is null. */
function ageAt(sql: SqlOrTransaction, column: 't.median_until' | 't.oldest_until', now: Instant) {
  const until = sql.unsafe(column);
  return sql`case when ${until} is not null then greatest(0, extract(epoch from ${now}::timestamptz - ${until}) * 1000)::float8 end`;
}
