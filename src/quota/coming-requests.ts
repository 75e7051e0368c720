/**
 * Forecasts the requests of each coming run, for schedules that request all items that are due. It applies their rules to counts, so the
 * reservation equals the requests that will be sent, not an average. Pure.
 */
import type { Instant } from '../clock.ts';
import { dayReset, dayStart } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';
import type { FreshnessBudget } from './achievable-ages.ts';
import { chooseDue, isOnTime, lastRefreshTime, refreshesToday, refreshRoom } from './refresh-order.ts';

/** The requests of one run. */
export type ComingRequests = { readonly at: Instant; readonly requests: number };

/** Items that are due together, and then again every `everyMs`. */
type DueItems = {
  /** Null when they were never requested. */
  readonly dueAt: Instant | null;
  readonly everyMs: number;
  readonly items: number;
};

/** The requests of a schedule that requests at most `most` due items at each run: first the items that were requested longest ago. */
export function comingItems(
  groups: readonly DueItems[],
  { runs, most }: { readonly runs: readonly Instant[]; readonly most: number },
): ComingRequests[] {
  const byRun = groupByRun<DueItems>(runs);
  for (const group of groups) byRun.add(group, group.dueAt);
  const waiting: DueItems[] = [];
  return runs.map((at, i) => {
    for (const group of byRun.at(i)) {
      const place = firstPlace(waiting, (other) => isBefore(group, other));
      waiting.splice(place, 0, group);
    }
    let left = most;
    let served = 0;
    for (const group of waiting) {
      if (left === 0) break;
      const items = Math.min(left, group.items);
      left -= items;
      byRun.add({ ...group, items, dueAt: at + group.everyMs }, at + group.everyMs);
      if (items === group.items) served++;
      else waiting[served] = { ...group, items: group.items - items };
    }
    // The waiting groups are changed in place: a month of runs has thousands of them at every run.
    waiting.splice(0, served);
    return { at, requests: most - left };
  });
}

/** Among items that were requested together, the more frequent ones come first; otherwise the order would depend on which of them waited before. */
function isBefore(a: DueItems, b: DueItems): boolean {
  const [ofA, ofB] = [lastRequestedAt(a), lastRequestedAt(b)];
  return ofA === ofB ? a.everyMs < b.everyMs : ofA < ofB;
}

function lastRequestedAt({ dueAt, everyMs }: DueItems): number {
  return dueAt === null ? Number.NEGATIVE_INFINITY : dueAt - everyMs;
}

/** Tracked series of one tier that are due together. */
export type DueSeries = {
  readonly priority: number;
  readonly refreshAfterMs: number;
  /** Null when they were never refreshed. */
  readonly dueAt: Instant | null;
  /** As in `RefreshCandidate`. */
  readonly achievableAgeMs?: number;
  readonly series: number;
  /** The upstream refused them; they are tried again when there is room. */
  readonly isTry?: boolean;
};

/** The time until an interval is tried again that the upstream refused because of the plan. */
export const TRY_AFTER_MS = DAY + 1;

type RefreshTerms = {
  readonly runs: readonly Instant[];
  /** The longest time between two runs. */
  readonly tickMs: number;
  readonly budget: FreshnessBudget;
  /** Requests for refreshes since midnight UTC, before the first run. */
  readonly spentToday: number;
  readonly now: Instant;
};

/** The requests of the schedule that refreshes tracked series, with the ages of the current plan. */
export function comingRefreshes(groups: readonly DueSeries[], terms: RefreshTerms): ComingRequests[] {
  const { runs, tickMs, budget, now } = terms;
  const byRun = groupByRun<DueSeries>(runs);
  for (const group of groups) byRun.add(group, group.dueAt);
  let waiting: DueSeries[] = [];
  let day = dayStart(now);
  let spentToday = terms.spentToday;
  let left = budget.left ?? Number.POSITIVE_INFINITY;
  return runs.map((at, i) => {
    if (dayStart(at) > day) {
      day = dayStart(at);
      spentToday = 0;
      left = budget.mostPerDay ?? left;
    }
    const due = [...waiting, ...byRun.at(i)];
    if (due.length === 0) return { at, requests: 0 };
    const candidates = due.map((group) => {
      const late = { dueAt: at - tickMs - 1, achievableAgeMs: 0 };
      return { ...group, ...(group.isTry ? late : {}), group, rank: 0, seriesId: 0 };
    });
    const isAnyOther = candidates.some((candidate) => !isOnTime(candidate, { now: at, tickMs }));
    const nextAt = runs[i + 1] ?? dayReset(at);
    const coming = isAnyOther ? refreshesToday([...due, ...byRun.after(i)], { now: at, nextAt }) : 0;
    const room = refreshRoom({ most: budget.most, left, spentToday, coming });
    const countOf = ({ series }: DueSeries) => series;
    const taken = new Map<DueSeries, number>();
    let requests = 0;
    for (const { candidate, count } of chooseDue(candidates, { now: at, tickMs, room, countOf })) {
      taken.set(candidate.group, count);
      requests += count;
      for (const next of nextRefreshes(candidate.group, count, at)) byRun.add(next, next.dueAt);
    }
    waiting = due.flatMap((group) => {
      const series = group.series - (taken.get(group) ?? 0);
      return series > 0 ? [{ ...group, series }] : [];
    });
    spentToday += requests;
    left -= requests;
    return { at, requests };
  });
}

/** Average requests a day for these series. */
export function perDayOf(groups: readonly Pick<DueSeries, 'series' | 'refreshAfterMs'>[]): number {
  return groups.reduce((sum, { series, refreshAfterMs }) => sum + (series * DAY) / refreshAfterMs, 0);
}

/** New series are spread over their refresh time in at most this many parts. */
const MOST_PARTS = 100;

/** When series that are refreshed at `at` are due next. For first refreshes, this only approximates `lastRefreshTime`. */
function nextRefreshes(group: DueSeries, series: number, at: Instant): DueSeries[] {
  const { dueAt, refreshAfterMs, isTry } = group;
  if (isTry) return [{ ...group, series, dueAt: at + TRY_AFTER_MS }];
  if (dueAt !== null) {
    const refreshAt = lastRefreshTime({ seriesId: 0, refreshAfterMs, refreshAt: dueAt }, at);
    return [{ ...group, series, dueAt: refreshAt + refreshAfterMs }];
  }
  const parts = Math.min(series, MOST_PARTS);
  return Array.from({ length: parts }, (_, k) => ({
    ...group,
    series: Math.floor(((k + 1) * series) / parts) - Math.floor((k * series) / parts),
    dueAt: at + Math.ceil(((k + 1) * refreshAfterMs) / parts),
  }));
}

/** Groups by run: each one is due at the first run at or after its instant. */
function groupByRun<T>(runs: readonly Instant[]) {
  const byRun = new Map<number, T[]>();
  return {
    add: (one: T, dueAt: Instant | null) => {
      const run = dueAt === null ? 0 : firstAtLeast(runs, dueAt);
      const others = byRun.get(run);
      if (others === undefined) byRun.set(run, [one]);
      else others.push(one);
    },
    at: (run: number): readonly T[] => byRun.get(run) ?? [],
    after: (run: number): readonly T[] => [...byRun].flatMap(([other, some]) => (other > run ? some : [])),
  };
}

/** The place of the first instant at or after `at`: the number of instants before it. */
export function firstAtLeast(sorted: readonly Instant[], at: Instant): number {
  return firstPlace(sorted, (other) => other >= at);
}

/** The place of the first element for which `isTrueOf` holds. It must hold for all later elements, too. */
function firstPlace<T>(sorted: readonly T[], isTrueOf: (one: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isTrueOf(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
