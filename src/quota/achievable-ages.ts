/**
 * How fresh tracked series can be kept with the available requests: pure arithmetic.
 *
 * One request refreshes one series, with any number of new candles (up to what a request holds). So a tier of n series that are
 * refreshed every t costs n/t requests. When all targets together cost more requests than there are, the plan stretches the refresh times:
 * equally within a priority, and never more for a higher priority than for a lower one.
 *
 * The service sends requests at the ticks of a schedule, so a due series waits for the next tick, and its data becomes older than the time
 * between two refreshes. The promised age includes this wait. If there are enough requests, the plan refreshes series earlier by this wait.
 * `refresh-order.ts` ensures that no series waits longer than for its tick, even when requests are short.
 */
import type { Instant } from '../clock.ts';
import { dayStart } from '../core/calendar.ts';
import { DAY, INTERVAL_MS, type Interval, MINUTE } from '../core/interval.ts';
import { forecast } from './forecast.ts';
import type { QuotaState, Reserved } from './quota.ts';
import { refreshStepMs } from './refresh-order.ts';

/** Tracked series with the same terms. */
export type TierDemand = {
  readonly id: number;
  /** Higher is served first. */
  readonly priority: number;
  readonly interval: Interval;
  readonly targetAgeMs: number;
  readonly series: number;
  /** The most rows in one answer. */
  readonly rowsPerRequest: number;
  /** The answers contain whole days: the last full day, which the upstream has from midnight on, and the open day. */
  readonly isOfDays?: boolean;
  /** The `refreshAfterMs` of the previous plan; null or absent when there is none. */
  readonly refreshAfterMs?: number | null;
};

type TierPlan = {
  readonly id: number;
  /** The greatest age of the data, while nothing fails; null = never refreshed, because there are no requests for it. */
  readonly achievableAgeMs: number | null;
  /** The time from one refresh of a series to when it is due again; null = never. */
  readonly refreshAfterMs: number | null;
  readonly requestsPerDay: number;
  /** False when more candles are new between two requests than one request holds. The newest are stored; the others stay gaps. */
  readonly keepsUp: boolean;
};

export type FreshnessPlan = {
  readonly tiers: readonly TierPlan[];
  readonly requestsPerDay: number;
  /** Requests a day that would reach all targets. */
  readonly wantedPerDay: number;
};

/** The refreshes of a day may differ from the average by this many requests for each tier, and once more. */
const UNEVEN = 2;

/** While the budget is short, a priority leaves this share to the lower ones, so that none starves. */
const SHARE_OF_LOWER = 0.1;

/**
 * Refresh times of whole days, or of parts of a day, become shorter only when the budget is this many times the cost. Otherwise a budget near
 * the border would change them from run to run, and each change makes more series due at once.
 */
const SPARE_TO_SHORTEN = 1.05;

/** The share of the budget that is planned. The rest is for retries, for new series and for late series. */
export const HEADROOM = 0.9;

/**
 * Plans `requestsPerDay` requests on average, and at most `mostPerDay` on any day; null means any number. `tickMs` is the longest time between
 * two ticks at which refreshes are sent.
 */
export function planFreshness({
  tiers,
  requestsPerDay,
  mostPerDay = null,
  tickMs = 0,
}: {
  readonly tiers: readonly TierDemand[];
  readonly requestsPerDay: number | null;
  readonly mostPerDay?: number | null;
  readonly tickMs?: number;
}): FreshnessPlan {
  const holdsMs = (tier: TierDemand) => tier.rowsPerRequest * INTERVAL_MS[tier.interval];
  const refreshMs = (tier: TierDemand) => {
    // If one request cannot hold the candles of the target age, the series must be refreshed more often.
    const targetMs = Math.min(tier.targetAgeMs, holdsMs(tier));
    if (tier.isOfDays) return tier.targetAgeMs >= DAY ? DAY : partOfDay(Math.max(tickMs, tier.targetAgeMs - tickMs));
    const ms = Math.max(tickMs, targetMs - tickMs);
    return tickMs === 0 ? ms : Math.floor(ms / tickMs) * tickMs;
  };
  const demandOf = (some: readonly TierDemand[]) =>
    some.reduce((sum, tier) => sum + (tier.series * DAY) / refreshMs(tier), 0);

  const planned: TierPlan[] = [];
  const priorities = [...new Set(tiers.filter((t) => t.series > 0).map((t) => t.priority))].sort((a, b) => b - a);
  let left = planable(requestsPerDay, mostPerDay, tiers.filter((tier) => tier.series > 0).length);
  let demandLeft = demandOf(tiers);
  let stretch = 1;
  const wantedPerDay = demandLeft;
  for (const [i, priority] of priorities.entries()) {
    const level = tiers.filter((tier) => tier.priority === priority && tier.series > 0);
    const demand = demandOf(level);
    const isLast = i === priorities.length - 1;
    // `alone`: the stretch when this priority takes everything except the share of the lower ones. `alike`: the stretch when it shares
    // equally with them. The smaller of the two counts, but it is never smaller than that of the higher priorities.
    const alone = demand / (left * (isLast ? 1 : 1 - SHARE_OF_LOWER));
    const alike = demandLeft / left;
    const least = Math.min(alone, alike);
    const withSpare = Math.max(stretch, least * SPARE_TO_SHORTEN);
    stretch = left > 0 ? Math.max(stretch, least) : Number.POSITIVE_INFINITY;
    const plans = level.map((tier) =>
      planTier(tier, { refreshMs: refreshMs(tier), stretch, withSpare, tickMs, holdsMs: holdsMs(tier) }),
    );
    planned.push(...plans);
    const rounded = plans.filter((_, j) => level[j]!.isOfDays);
    const exact = demandOf(level.filter((tier) => !tier.isOfDays)) / stretch;
    left = Math.max(0, left - exact - requestsOf(rounded));
    demandLeft -= demand;
  }
  const byId = new Map(planned.map((tier) => [tier.id, tier]));
  const all = tiers.map((tier) => byId.get(tier.id) ?? planOfNone(tier));
  return { tiers: all, requestsPerDay: requestsOf(all), wantedPerDay };
}

/** Some days have more refreshes than others, about one more in each tier. Where the plan limits days, these must fit, too. */
function planable(requestsPerDay: number | null, mostPerDay: number | null, tiers: number): number {
  if (requestsPerDay === null) return Number.POSITIVE_INFINITY;
  if (mostPerDay === null) return requestsPerDay;
  return Math.min(requestsPerDay, Math.max(mostPerDay - UNEVEN * (tiers + 1), mostPerDay / 2));
}

function requestsOf(tiers: readonly TierPlan[]): number {
  return tiers.reduce((total, tier) => total + tier.requestsPerDay, 0);
}

/**
 * The longest refresh time up to `mostMs` that divides a day evenly. It is for answers about whole days: one refresh is then at midnight, when
 * the upstream has the last day.
 */
function partOfDay(mostMs: number): number {
  let parts = Math.max(1, Math.ceil(DAY / mostMs));
  while (DAY % (parts * MINUTE) !== 0) parts++;
  return DAY / parts;
}

/** The next longer refresh time, when there are too few requests for `ms`. */
function nextPartOfDay(ms: number): number {
  if (ms > DAY) return Math.ceil(ms / DAY) * DAY;
  let parts = Math.floor(DAY / ms);
  while (DAY % (parts * MINUTE) !== 0) parts--;
  return DAY / parts;
}

/** A part of a day, or whole days. `stretch` decides; but a time becomes shorter than before only as far as `withSpare` allows. */
function partsOrDays({ refreshMs, stretch, withSpare }: TierTerms, before: number | null): number {
  const stretchedBy = (times: number) => (times > 1 ? nextPartOfDay(Math.ceil(refreshMs * times)) : refreshMs);
  const next = stretchedBy(stretch);
  // With another plan or history limit, the previous time may not be a part of a day.
  if (before === null || before !== nextPartOfDay(before)) return next;
  return Math.max(next, Math.min(before, stretchedBy(withSpare)));
}

type TierTerms = {
  readonly refreshMs: number;
  readonly stretch: number;
  /** The stretch with `SPARE_TO_SHORTEN` times fewer requests. */
  readonly withSpare: number;
  readonly tickMs: number;
  readonly holdsMs: number;
};

function planTier({ id, series, isOfDays, refreshAfterMs = null }: TierDemand, terms: TierTerms): TierPlan {
  const { refreshMs, stretch, tickMs, holdsMs } = terms;
  if (!Number.isFinite(stretch))
    return { id, achievableAgeMs: null, refreshAfterMs: null, requestsPerDay: 0, keepsUp: false };
  const after = isOfDays ? partsOrDays(terms, refreshAfterMs) : Math.ceil(refreshMs * stretch);
  return {
    id,
    achievableAgeMs: after + tickMs,
    refreshAfterMs: roundDown(after),
    requestsPerDay: (series * DAY) / after,
    keepsUp: after <= holdsMs,
  };
}

/** Rounds down to a step of the refresh times. */
function roundDown(ms: number): number {
  const step = refreshStepMs(ms);
  return ms < step ? ms : Math.floor(ms / step) * step;
}

/** A tier without series. */
function planOfNone({ id, targetAgeMs }: TierDemand): TierPlan {
  return { id, achievableAgeMs: targetAgeMs, refreshAfterMs: targetAgeMs, requestsPerDay: 0, keepsUp: true };
}

/** Requests for freshness; null = any number. */
export type FreshnessBudget = {
  /** Requests a day with which the ages are planned. */
  readonly planned: number | null;
  /** Requests a day: the planned ones, retries, and what rounding leaves. */
  readonly most: number | null;
  /** The most requests of any day; null where the plan does not limit days. */
  readonly mostPerDay: number | null;
  /** Requests left until the day and the month end, without those that the other schedules need. */
  readonly left: number | null;
  /** Refreshes that are due until midnight UTC. */
  readonly coming: number;
};

/**
 * The budget follows a shortage only if the rest of the month is short of the plan by more than this share and `SHORT_BY` requests: the requests due
 * in a part of a month are never exactly the average.
 */
const SHORT_OF_PLAN = 0.02;
const SHORT_BY = 3;

/**
 * The budget of an average day: what the plan allows after `reserved` for the other schedules, but no more than the rest of this month can
 * sustain. Backfills may use the requests that are not planned. The requests they have used are not subtracted a second time; otherwise each
 * backfill would take its share of the rest, and the ages would grow and grow.
 *
 * The budget stays the same all day, so that refresh times do not move: the function adds today's refreshes to what is left.
 */
export function freshnessBudget({
  state,
  reserved,
  backfillSpent = 0,
  spentToday = 0,
  coming = 0,
}: {
  readonly state: Pick<QuotaState, 'now' | 'month' | 'day' | 'rate'>;
  /** The reservation of the other schedules from an instant to the end of its windows. */
  readonly reserved: (at: Instant) => Reserved;
  /** Requests of backfills in this month. */
  readonly backfillSpent?: number;
  /** Requests since midnight UTC for series that were due. */
  readonly spentToday?: number;
  /** Refreshes that are due until midnight UTC. */
  readonly coming?: number;
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
  if (perDay === null) return { planned: null, most: null, mostPerDay: null, left: null, coming };
  const beside = reserved(now);
  const leftOf = ({ limit, spent }: QuotaState['day'], others: number) =>
    limit === null ? Number.POSITIVE_INFINITY : Math.max(0, limit - spent - others);
  const ofMonth = leftOf(month, beside.month);
  const left = Math.min(ofMonth, leftOf(day, beside.day));
  const days = (month.reset - dayStart(now)) / DAY;
  const aDay = (requests: number) => Math.max(0, Math.min(perDay, (requests + spentToday) / days));
  const most = aDay(ofMonth);
  const held = aDay(ofMonth + backfillSpent) * HEADROOM;
  const isShort = most * days + SHORT_BY < held * days * (1 - SHORT_OF_PLAN);
  const mostPerDay = day.limit === null ? null : most;
  return { planned: isShort ? most : held, most, mostPerDay, left: Number.isFinite(left) ? left : null, coming };
}

/** Requests of one run on average; 0 when there are no runs. */
export function freshnessPerRun(requestsPerDay: number, runsPerDay: number): number {
  return runsPerDay === 0 ? 0 : requestsPerDay / runsPerDay;
}
