/**
 * How fresh tracked series can be kept with the requests there are: pure arithmetic.
 *
 * One request refreshes one series, however many candles are new (up to what a request holds). So a tier of n series that is
 * refreshed every so often costs n/that requests. When all targets together cost more than there is, these times are stretched: equally within
 * a priority, and never more for a higher priority than for a lower one.
 *
 * Requests are sent at the ticks of a schedule, so a series waits for the next tick: its data becomes older than the time between two
 * refreshes. The age that is promised includes this wait. Where there are enough requests, series are refreshed as much earlier.
 * That no series waits longer than for its tick, however short requests are, is the work of `refresh-order.ts`.
 */
import type { Instant } from '../clock.ts';
import { dayStart } from '../core/calendar.ts';
import { DAY, INTERVAL_MS, type Interval, MINUTE } from '../core/interval.ts';
import { forecast } from './forecast.ts';
import type { QuotaState, Reserved } from './quota.ts';
import { refreshStepMs } from './refresh-order.ts';

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
  /** Its answers are about whole days: the last one, which is there at midnight, and the open one. */
  readonly isOfDays?: boolean;
  /** As planned before; null or absent: never. */
  readonly refreshAfterMs?: number | null;
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
};

/** By so many requests the refreshes of a day may differ from the average, beside one for each tier. */
const UNEVEN = 2;

/** While the budget is short, a priority leaves this share to the lower ones, so that none starves. */
const SHARE_OF_LOWER = 0.1;

/**
 * Times of days, or of parts of a day, become shorter only when so many times the requests are there. Otherwise a budget at the border changes them
 * from run to run, and each change has more series due at once.
 */
const SPARE_TO_SHORTEN = 1.05;

/** The share of the budget that is planned. The rest is for retries, for new series, and for those that something has made late. */
export const HEADROOM = 0.9;

/**
 * Null = any number: `requestsPerDay` are planned, and no day has more than `mostPerDay`. `tickMs`: the longest time between two ticks at which
 * refreshes are sent.
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
    // One request cannot hold the candles of so long a time: such a series is refreshed more often than its target says.
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
    // `alone`: the stretch when this priority takes all but the share of the lower ones. `alike`: the stretch when it shares equally
    // with them. The smaller one counts, but never one that is smaller than that of the priorities above.
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

/** Some days have more refreshes than others, of each tier about one: where days are limited, and have few requests, these must fit. */
function planable(requestsPerDay: number | null, mostPerDay: number | null, tiers: number): number {
  if (requestsPerDay === null) return Number.POSITIVE_INFINITY;
  if (mostPerDay === null) return requestsPerDay;
  return Math.min(requestsPerDay, Math.max(mostPerDay - UNEVEN * (tiers + 1), mostPerDay / 2));
}

function requestsOf(tiers: readonly TierPlan[]): number {
  return tiers.reduce((total, tier) => total + tier.requestsPerDay, 0);
}

/** Where answers are about whole days, a day is divided evenly: a refresh at each midnight, when the last day is there. At most so long. */
function partOfDay(mostMs: number): number {
  let parts = Math.max(1, Math.ceil(DAY / mostMs));
  while (DAY % (parts * MINUTE) !== 0) parts++;
  return DAY / parts;
}

/** The next longer one, when requests do not suffice for `ms`. */
function nextPartOfDay(ms: number): number {
  if (ms > DAY) return Math.ceil(ms / DAY) * DAY;
  let parts = Math.floor(DAY / ms);
  while (DAY % (parts * MINUTE) !== 0) parts--;
  return DAY / parts;
}

/** A part of a day, or whole days: as `stretch` says or, where that is shorter than before, only as short as `withSpare` says. */
function partsOrDays({ refreshMs, stretch, withSpare }: TierTerms, before: number | null): number {
  const stretchedBy = (times: number) => (times > 1 ? nextPartOfDay(Math.ceil(refreshMs * times)) : refreshMs);
  const next = stretchedBy(stretch);
  // Another plan, or another history limit, may have had other times.
  if (before === null || before !== nextPartOfDay(before)) return next;
  return Math.max(next, Math.min(before, stretchedBy(withSpare)));
}

type TierTerms = {
  readonly refreshMs: number;
  readonly stretch: number;
  /** The stretch if there were fewer requests (`SPARE_TO_SHORTEN`). */
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

/** To a step of the refresh times. */
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
  /** Of a day; the ages are planned with this number. */
  readonly planned: number | null;
  /** Of a day: the planned ones, retries, and what rounding leaves. */
  readonly most: number | null;
  /** Where days are limited: no day has more. */
  readonly mostPerDay: number | null;
  /** Until the day and the month end, beside what the other schedules need. */
  readonly left: number | null;
  /** Refreshes that are due until midnight UTC. */
  readonly coming: number;
};

/** So much less than what is planned may be left of a month: what is due in a part of it is never quite the average. */
const SHORT_OF_PLAN = 0.02;
const SHORT_BY = 3;

/**
 * From day to day: what the plan allows after `reserved` for the other schedules, and no more than what is left of this month lasts
 * for. Backfills may use what is not planned. What they have used of it is not subtracted a second time: otherwise each backfill would
 * take its share of the rest, and the ages would become longer and longer.
 *
 * It is the same all day long, so that refresh times stay where they are: what the refreshes of the day have used is added again.
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
  /** Of this month, by backfills. */
  readonly backfillSpent?: number;
  /** Since midnight UTC, for series that were due. */
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

/** Requests of one run on average, when there are so many runs a day; 0 when there are none. */
export function freshnessPerRun(requestsPerDay: number, runsPerDay: number): number {
  return runsPerDay === 0 ? 0 : requestsPerDay / runsPerDay;
}
