/**
 * What schedules that request whatever is due will request at each run that is still to come: their rules, applied to counts. So what is reserved is
 * what will be asked, not an average. Pure.
 */
import type { Instant } from '../clock.ts';
import { dayReset, dayStart } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';
import type { FreshnessBudget } from './achievable-ages.ts';
import { chooseDue, isOnTime, lastRefreshTime, refreshesToday, refreshRoom } from './refresh-order.ts';

/** At one run. */
export type ComingRequests = { readonly at: Instant; readonly requests: number };

/** Items that are due together, and then again each `everyMs`. */
export type DueItems = {
  /** Null: they were never requested. */
  readonly dueAt: Instant | null;
  readonly everyMs: number;
  readonly items: number;
};

/** Of a schedule that requests at most `most` due items at each run, those first that were requested longest ago. */
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
    // Those that wait stay as they are: in a month of runs there are thousands, run after run.
    waiting.splice(0, served);
    return { at, requests: most - left };
  });
}

/** Of those that were requested together, first the ones that are wanted more often: otherwise their order would depend on who waited before. */
function isBefore(a: DueItems, b: DueItems): boolean {
  const [ofA, ofB] = [askedAt(a), askedAt(b)];
  return ofA === ofB ? a.everyMs < b.everyMs : ofA < ofB;
}

function askedAt({ dueAt, everyMs }: DueItems): number {
  return dueAt === null ? Number.NEGATIVE_INFINITY : dueAt - everyMs;
}

/** Tracked series of one tier that are due together. */
export type DueSeries = {
  readonly priority: number;
  readonly refreshAfterMs: number;
  /** Null: they were never refreshed. */
  readonly dueAt: Instant | null;
  /** As in `RefreshCandidate`. */
  readonly achievableAgeMs?: number;
  readonly series: number;
  /** It is tried again after a refusal, when there is room. */
  readonly isTry?: boolean;
};

/** After an interval was refused to the plan, it is tried again. */
export const TRY_AFTER_MS = DAY + 1;

export type RefreshTerms = {
  readonly runs: readonly Instant[];
  /** The longest time between two runs. */
  readonly tickMs: number;
  readonly budget: FreshnessBudget;
  /** Requests for refreshes since midnight UTC, before the first run. */
  readonly spentToday: number;
  readonly now: Instant;
};

/** Of the schedule that keeps the tracked series fresh, with the ages as they are planned now. */
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

/** Requests a day for these series, on average. */
export function perDayOf(groups: readonly Pick<DueSeries, 'series' | 'refreshAfterMs'>[]): number {
  return groups.reduce((sum, { series, refreshAfterMs }) => sum + (series * DAY) / refreshAfterMs, 0);
}

/** More parts than this are not told apart when new series are spread over their time. */
const MOST_PARTS = 100;

/** Of series that are refreshed for the first time, about as `lastRefreshTime` says. */
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

/** What is due at which run: at the first one at or after its instant. */
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

/** The place of the first instant at or after `at`: how many are before it. */
export function firstAtLeast(sorted: readonly Instant[], at: Instant): number {
  return firstPlace(sorted, (other) => other >= at);
}

/** The place of the first of which it is true; it is true of all that follow. */
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
