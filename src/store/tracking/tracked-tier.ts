/** The tiers of tracked series: how many series each has, and how old its data becomes with the current quota. */
import type { Instant } from '../../clock.ts';
import { dayStart } from '../../core/calendar.ts';
import type { SeriesOfCoins } from '../../core/interval.ts';
import { DEFAULT_PRIORITY } from '../../core/tier.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import type { tier } from '../schema/tracking.ts';

type Tier = Readonly<typeof tier.$inferSelect>;

export type TierRow = Pick<Tier, 'id' | 'tier' | 'priority' | 'interval'> & {
  readonly targetAgeMs: number;
  /** Null when it is not planned yet, or there is no quota for it. */
  readonly achievableAgeMs: number | null;
  readonly refreshAfterMs: number | null;
  readonly isPlanned: boolean;
  readonly series: number;
};

/** The id of a tier that is planned but not stored. No stored tier has this id. */
export const NEW_TIER = -1;

export function newTier(tier: Pick<TierRow, 'tier' | 'interval' | 'targetAgeMs' | 'series'>): TierRow {
  const notPlanned = { achievableAgeMs: null, refreshAfterMs: null, isPlanned: false };
  return { id: NEW_TIER, priority: DEFAULT_PRIORITY[tier.tier], ...tier, ...notPlanned };
}

/** Highest priority first. Ended series count, because they need their last refreshes. The series in `without` are not counted. */
export async function readTiers(sql: SqlOrTransaction, without: SeriesOfCoins | null = null): Promise<TierRow[]> {
  const isLeftOut =
    without === null
      ? sql``
      : sql`and not exists (select from market.series s where s.id = tr.series_id and s.coin_id = any(${without.coinIds as string[]}::text[])
          and s.interval = ${without.interval}::market.candle_interval and s.quote = ${without.quote})`;
  return sql<TierRow[]>`
    select k.id, k.tier, k.priority, k.interval, (extract(epoch from k.target_age) * 1000)::float8 as target_age_ms,
      (extract(epoch from k.achievable_age) * 1000)::float8 as achievable_age_ms,
      (extract(epoch from k.refresh_after) * 1000)::float8 as refresh_after_ms, k.planned_at is not null as is_planned,
      count(tr.series_id) as series
    from ops.tier k left join ops.tracked tr on tr.tier_id = k.id ${isLeftOut}
    group by k.id order by k.priority desc, k.tier = 'all', k.tier = 'top', k.interval desc, k.target_age, k.id`;
}

type PlannedAge = Pick<TierRow, 'id' | 'achievableAgeMs' | 'refreshAfterMs'> & {
  readonly keepsUp: boolean;
};

/**
 * Saves the ages that the quota allows each tier. The order of refreshes depends on them, and `market.freshness` shows them. If the quota has
 * grown, a shorter age is promised only at the first run of a day at which no series is late for it, because that day has the requests for it.
 * A tier without a promised age gets the planned age at once. `tickMs` is the longest time between two runs.
 */
export async function recordPlannedAges(
  sql: SqlOrTransaction,
  tiers: readonly PlannedAge[],
  { now, tickMs }: { readonly now: Instant; readonly tickMs: number },
): Promise<void> {
  if (tiers.length === 0) return;
  const seconds = (ms: number | null) => (ms === null ? null : String(ms / 1000));
  await sql`
    update ops.tier k set
      achievable_age = case
        when p.age < extract(epoch from k.achievable_age) and (k.planned_at >= ${dayStart(now)}::timestamptz or exists (
          select from ops.tracked t where t.tier_id = k.id and t.ends_at is null
            and least(t.asked_at, t.refresh_at) < ${now - tickMs}::timestamptz - make_interval(secs => p.after))) then k.achievable_age
        else make_interval(secs => p.age) end,
      refresh_after = make_interval(secs => p.after), keeps_up = p.keeps_up, planned_at = ${now}
    from unnest(${tiers.map((t) => t.id)}::int[],
        ${tiers.map((t) => seconds(t.achievableAgeMs))}::float8[],
        ${tiers.map((t) => seconds(t.refreshAfterMs))}::float8[],
        ${tiers.map((t) => String(t.keepsUp))}::text[]::bool[]) as p(id, age, after, keeps_up)
    where k.id = p.id`;
}
