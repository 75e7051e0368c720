/**
 * How fresh tracked series can be kept with the requests there are: pure arithmetic.
 *
 * One request refreshes one series, however many candles are new (up to what a request holds). So a tier of n series that is
 * refreshed every `age` costs n/age requests. When all targets together cost more than there is, the ages are stretched: equally within
 * a priority, and never more for a higher priority than for a lower one.
 */
import type { Instant } from '../clock.ts';
import { DAY, INTERVAL_MS, type Interval } from '../core/interval.ts';
import { forecast } from './forecast.ts';
import type { QuotaState, Reserved } from './quota.ts';

/** Tracked series that are treated alike. */
export type TierDemand = {
  readonly id: number;
  /** Higher is served first. */
  readonly priority: number;
  readonly interval: Interval;
  readonly targetAgeMs: number;
  readonly series: number;
  /** One request holds so many of its rows. */
  readonly rowsPerRequest: number;
};

type TierPlan = {
  readonly id: number;
  /** Each series is refreshed before its data is older than this; null = never, because there are no requests for it. */
  readonly achievableAgeMs: number | null;
  readonly requestsPerDay: number;
  /** False: more candles come between two requests than one request holds. The newest are kept; the others stay gaps. */
  readonly keepsUp: boolean;
};

export type FreshnessPlan = {
  readonly tiers: readonly TierPlan[];
  readonly requestsPerDay: number;
  /** What it would cost to reach all targets. */
  readonly wantedPerDay: number;
};

/** While the budget is short, a priority leaves this share to the lower ones, so that none starves. */
const SHARE_OF_LOWER = 0.1;

/** The share of the budget that is planned. The rest is for retries, and for refreshes that fall into the same moment. */
export const HEADROOM = 0.9;

/** `requestsPerDay` null = any number. */
export function planFreshness({
  tiers,
  requestsPerDay,
}: {
  readonly tiers: readonly TierDemand[];
  readonly requestsPerDay: number | null;
}): FreshnessPlan {
  const holdsMs = (tier: TierDemand) => tier.rowsPerRequest * INTERVAL_MS[tier.interval];
  // One request cannot hold the candles of so long a time: such a series is refreshed more often than its target says.
  const targetMs = (tier: TierDemand) => Math.min(tier.targetAgeMs, holdsMs(tier));
  const demandOf = (some: readonly TierDemand[]) =>
    some.reduce((sum, tier) => sum + (tier.series * DAY) / targetMs(tier), 0);

  const planned: TierPlan[] = [];
  const priorities = [...new Set(tiers.filter((t) => t.series > 0).map((t) => t.priority))].sort((a, b) => b - a);
  let left = requestsPerDay ?? Number.POSITIVE_INFINITY;
  let demandLeft = demandOf(tiers);
  let stretch = 1;
  const wantedPerDay = demandLeft;
  for (const [i, priority] of priorities.entries()) {
    const level = tiers.filter((tier) => tier.priority === priority && tier.series > 0);
    const demand = demandOf(level);
    const isLast = i === priorities.length - 1;
    // `alone`: the stretch when this priority takes all but the share of the lower ones. `alike`: the stretch when it shares equally
    // with them. The smaller one counts, but never one that is smaller than that of the priorities above.
    const alone = demand / (left * (isLast ? 1 : 1 - SHARE_OF_LOWER));
    const alike = demandLeft / left;
    stretch = left > 0 ? Math.max(stretch, Math.min(alone, alike)) : Number.POSITIVE_INFINITY;
    for (const tier of level) {
      const age = Math.ceil(targetMs(tier) * stretch);
      planned.push(
        Number.isFinite(age)
          ? {
              id: tier.id,
              achievableAgeMs: age,
              requestsPerDay: (tier.series * DAY) / age,
              keepsUp: age <= holdsMs(tier),
            }
          : { id: tier.id, achievableAgeMs: null, requestsPerDay: 0, keepsUp: false },
      );
    }
    left = Math.max(0, left - demand / stretch);
    demandLeft -= demand;
  }
  const byId = new Map(planned.map((tier) => [tier.id, tier]));
  const ofNone = ({ id, targetAgeMs }: TierDemand): TierPlan => ({
    id,
    achievableAgeMs: targetAgeMs,
    requestsPerDay: 0,
    keepsUp: true,
  });
  return {
    tiers: tiers.map((tier) => byId.get(tier.id) ?? ofNone(tier)),
    requestsPerDay: planned.reduce((sum, tier) => sum + tier.requestsPerDay, 0),
    wantedPerDay,
  };
}

/** Requests a day for freshness; null = any number. */
export type FreshnessBudget = {
  /** The ages are planned with this number. */
  readonly planned: number | null;
  /** At most this many are sent: the planned ones, retries, and what rounding leaves. */
  readonly most: number | null;
};

/**
 * From day to day: what the plan allows after `reserved` for the other schedules, and no more than what is left of this month lasts
 * for. Backfills may use what is not planned. What they have used of it is not subtracted a second time: otherwise each backfill would
 * take its share of the rest, and the ages would become longer and longer.
 */
export function freshnessBudget({
  state,
  reserved,
  backfillSpent = 0,
}: {
  readonly state: Pick<QuotaState, 'now' | 'month' | 'day' | 'rate'>;
  /** The reservation of the other schedules from an instant to the end of its windows. */
  readonly reserved: (at: Instant) => Reserved;
  /** Of this month, by backfills. */
  readonly backfillSpent?: number;
}): FreshnessBudget {
  const { now, month, day, rate } = state;
  const limits = { perMonth: month.limit, perDay: day.limit, perSecond: rate.limit };
  const { perDay } = forecast({
    requests: 0,
    limits,
    spent: { day: day.spent, month: month.spent },
    now,
    reserved,
  });
  if (perDay === null) return { planned: null, most: null };
  const days = (month.reset - now) / DAY;
  const left = month.limit === null ? null : Math.max(0, month.limit - month.spent - reserved(now).month);
  const most = Math.max(0, left === null ? perDay : Math.min(perDay, left / days));
  const held = left === null ? perDay : Math.min(perDay, (left + backfillSpent) / days);
  return { planned: Math.min(most, Math.max(0, held) * HEADROOM), most };
}

/** Requests of one run on average, when there are so many runs a day; 0 when there are none. */
export function freshnessPerRun(requestsPerDay: number, runsPerDay: number): number {
  return runsPerDay === 0 ? 0 : requestsPerDay / runsPerDay;
}
