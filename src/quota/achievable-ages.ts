/**
 * How fresh tracked series can be kept with the requests there are: pure arithmetic.
 *
 * One request refreshes one series, however many candles are new (up to what a request holds). So a tier of n series that is
 * refreshed every so often costs n/that requests. When all targets together cost more than there is, these times are stretched: equally within
 * a priority, and never more for a higher priority than for a lower one.
 *
 * Requests are sent at the ticks of a schedule, so a series waits for the next tick: its data becomes older than the time between two
 * refreshes. The age that is promised includes this wait. Where there are enough requests, series are refreshed as much earlier.
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
  /** Its answers are about the last full day: there is a new one each midnight, and none between. */
  readonly isDaily?: boolean;
};

type TierPlan = {
  readonly id: number;
  /** The data of no series becomes older than this, while nothing fails; null = never refreshed, because there are no requests for it. */
  readonly achievableAgeMs: number | null;
  /** The time from one refresh of a series to when it is due again; null = never. */
  readonly refreshAfterMs: number | null;
  readonly requestsPerDay: number;
  /** False: more candles come between two requests than one request holds. The newest are kept; the others stay gaps. */
  readonly keepsUp: boolean;
};

export type FreshnessPlan = {
  readonly tiers: readonly TierPlan[];
  readonly requestsPerDay: number;
  /** What it would cost to reach all targets. */
  readonly wantedPerDay: number;
  /** Of `requestsPerDay`, those for answers about the last full day: they are due at midnight. */
  readonly dailyRequests: number;
};

/** When requests are short, a series waits for so many requests of others that are due at the same tick. */
const REQUESTS_BEFORE = 2;

/** While the budget is short, a priority leaves this share to the lower ones, so that none starves. */
const SHARE_OF_LOWER = 0.1;

/** The share of the budget that is planned. The rest is for retries, and for refreshes that fall into the same moment. */
export const HEADROOM = 0.9;

/** `requestsPerDay` null = any number. `tickMs`: the longest time between two ticks at which refreshes are sent. */
export function planFreshness({
  tiers,
  requestsPerDay,
  tickMs = 0,
}: {
  readonly tiers: readonly TierDemand[];
  readonly requestsPerDay: number | null;
  readonly tickMs?: number;
}): FreshnessPlan {
  const holdsMs = (tier: TierDemand) => tier.rowsPerRequest * INTERVAL_MS[tier.interval];
  // One request cannot hold the candles of so long a time: such a series is refreshed more often than its target says.
  const targetMs = (tier: TierDemand) => Math.min(tier.targetAgeMs, holdsMs(tier));
  const refreshMs = (tier: TierDemand) => (tier.isDaily ? DAY : Math.max(tickMs, targetMs(tier) - tickMs));
  const demandOf = (some: readonly TierDemand[]) =>
    some.reduce((sum, tier) => sum + (tier.series * DAY) / refreshMs(tier), 0);
  // A tick sends no more than its part of the day's requests: a series that is refreshed as often as these allow waits for those of others.
  const queueMs =
    requestsPerDay === null || tickMs === 0 ? 0 : Math.max(tickMs, (REQUESTS_BEFORE * DAY) / requestsPerDay);

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
      const waitMs = stretch > 1 ? tickMs + queueMs : tickMs;
      planned.push(planTier(tier, { refreshMs: refreshMs(tier), stretch, waitMs, holdsMs: holdsMs(tier) }));
    }
    left = Math.max(0, left - demand / stretch);
    demandLeft -= demand;
  }
  const byId = new Map(planned.map((tier) => [tier.id, tier]));
  const all = tiers.map((tier) => byId.get(tier.id) ?? planOfNone(tier));
  const sum = (some: readonly TierPlan[]) => some.reduce((total, tier) => total + tier.requestsPerDay, 0);
  return {
    tiers: all,
    requestsPerDay: sum(all),
    wantedPerDay,
    dailyRequests: sum(all.filter((_, i) => tiers[i]!.isDaily)),
  };
}

type TierTerms = {
  readonly refreshMs: number;
  readonly stretch: number;
  readonly waitMs: number;
  readonly holdsMs: number;
};

function planTier({ id, series }: TierDemand, { refreshMs, stretch, waitMs, holdsMs }: TierTerms): TierPlan {
  const after = Math.ceil(refreshMs * stretch);
  if (!Number.isFinite(after))
    return { id, achievableAgeMs: null, refreshAfterMs: null, requestsPerDay: 0, keepsUp: false };
  return {
    id,
    achievableAgeMs: after + waitMs,
    refreshAfterMs: after,
    requestsPerDay: (series * DAY) / after,
    keepsUp: after <= holdsMs,
  };
}

/** A tier without series. */
function planOfNone({ id, targetAgeMs }: TierDemand): TierPlan {
  return { id, achievableAgeMs: targetAgeMs, refreshAfterMs: targetAgeMs, requestsPerDay: 0, keepsUp: true };
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
