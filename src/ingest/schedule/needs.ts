/**
 * The requests that the schedules will still need, for the reservation. What is known to be due is counted run by run: items of the catalogue until
 * the month ends, and series, which are many, until the day ends. Everything else, and what comes later, counts on average.
 */
import type { Instant } from '../../clock.ts';
import { dayReset, dayStart, monthReset } from '../../core/calendar.ts';
import { DAY } from '../../core/interval.ts';
import type { FreshnessBudget } from '../../quota/achievable-ages.ts';
import {
  type ComingRequests,
  comingItems,
  comingRefreshes,
  type DueSeries,
  firstAtLeast,
  perDayOf,
  TRY_AFTER_MS,
} from '../../quota/coming-requests.ts';
import type { Need } from '../../quota/reservation.ts';
import type { RefusedInterval } from '../../store/candle/refusal.ts';
import type { CatalogueKind, ComingItems } from '../../store/catalogue/catalogue-item.ts';
import type { ComingRefreshes } from '../../store/tracking/tracked-series.ts';
import type { ScheduleRun } from '../../store/work/schedule-run.ts';
import { REFUSED_EVERY_MS } from '../catalogue/catalogue-outcome.ts';
import { CATALOGUE_PLAN } from '../catalogue/catalogue-plan.ts';
import { longestGapMs } from './cadence.ts';
import { catalogueKindOf, type Schedule } from './schedule-plan.ts';
import { standingOf } from './tick.ts';

/** What is due, and when. */
export type ComingWork = {
  readonly readAt: Instant;
  readonly items: Readonly<Record<CatalogueKind, readonly ComingItems[]>>;
  readonly refreshes: readonly ComingRefreshes[];
};

/** What the database knows about the work of the schedules. */
export type KnownWork = ComingWork & {
  /** The latest run of each schedule that has ever run. */
  readonly runs: readonly ScheduleRun[];
  /** Intervals of tracked series that the upstream refused. A day later one request tests whether it still refuses. */
  readonly refusedIntervals: readonly RefusedInterval[];
};

/** Average needs, for schedules of which only the cadence is known. */
export function averageNeeds(schedules: readonly Schedule[]): readonly Need[] {
  return schedules.flatMap(({ name, requests, cadence, isAccountRequest, refusedUntil = 0 }) => {
    if (cadence === null || requests === 0) return [];
    const ticks = (from: Instant, to: Instant) => cadence.count(Math.max(from, refusedUntil), to);
    return [{ name, requests, ticks, isAccountRequest }];
  });
}

/** Needs of all schedules except `freshness`, which gets what these leave. */
export function comingNeeds(schedules: readonly Schedule[], work: KnownWork): readonly Need[] {
  return schedules.flatMap((schedule): Need[] => {
    const { name, requests, cadence, isAccountRequest } = schedule;
    if (cadence === null || name === 'freshness') return [];
    const kind = catalogueKindOf(schedule);
    if (kind !== null) return needOfCatalogue(schedule, kind, work);
    if (requests === 0) return [];
    const waits = isWaiting(schedule, work) ? 1 : 0;
    const ticks = (from: Instant, to: Instant) =>
      (isSameDay(from, work) ? waits : 0) + cadence.count(Math.max(from, work.readAt + 1), to);
    return [{ name, requests, ticks, isAccountRequest }];
  });
}

function needOfCatalogue(schedule: Schedule, kind: CatalogueKind, work: KnownWork): Need[] {
  const { name, requests, refusedUntil } = schedule;
  const { ageMs, idleAgeMs } = CATALOGUE_PLAN[kind];
  // Nothing is requested, and so nothing is reserved, before `refusedUntil`.
  const end = Math.max(monthReset(work.readAt), refusedUntil ?? 0);
  const runs = comingRuns(schedule, work, end);
  const groups = work.items[kind].map(({ dueAt, isIdle, items }) => {
    return { dueAt, everyMs: isIdle ? idleAgeMs : ageMs, items };
  });
  // Of a kind that the upstream refuses, one item is requested from time to time.
  const refused = { dueAt: refusedUntil ?? null, everyMs: REFUSED_EVERY_MS, items: 1 };
  const coming =
    refusedUntil === undefined
      ? comingItems(groups, { runs, most: schedule.most ?? 0 })
      : comingItems(groups.length === 0 ? [] : [refused], { runs, most: 1 });
  const average = requests * (schedule.cadence!.count(work.readAt, work.readAt + 30 * DAY) / 30);
  return [needOf(name, coming, { work, end, perDay: average })];
}

/** The need of the schedule `freshness`. `spentToday`: its requests since midnight UTC. */
export function needOfFreshness(
  schedule: Schedule,
  work: KnownWork,
  { budget, spentToday }: { readonly budget: FreshnessBudget; readonly spentToday: number },
): readonly Need[] {
  const { name, cadence } = schedule;
  if (cadence === null) return [];
  const { refusedIntervals, readAt } = work;
  // Of an interval that the upstream refused, one series is tried, and the others are not requested.
  const refreshes = work.refreshes.filter((one) => !refusedIntervals.some(({ interval }) => interval === one.interval));
  const end = dayReset(readAt);
  const runs = comingRuns(schedule, work, end);
  const queued = refreshes.reduce((sum, group) => sum + group.queued, 0);
  const terms = { runs, tickMs: longestGapMs(cadence), budget, spentToday: spentToday + queued, now: readAt };
  const coming = [
    { at: readAt, requests: queued },
    ...comingRefreshes([...refreshes, ...refusedIntervals.map(asTry)], terms),
  ];
  return [needOf(name, coming, { work, end, perDay: perDayOf(refreshes) })];
}

function asTry({ refusedAt, priority }: RefusedInterval): DueSeries {
  return { priority, refreshAfterMs: TRY_AFTER_MS, dueAt: refusedAt + TRY_AFTER_MS, series: 1, isTry: true };
}

/** The runs of a schedule until `end`, including a run that is due or unfinished now. */
function comingRuns(schedule: Schedule, work: KnownWork, end: Instant): Instant[] {
  const { readAt } = work;
  const runs = isWaiting(schedule, work) ? [readAt] : [];
  for (let at = schedule.cadence!.next(readAt); at < end; at = schedule.cadence!.next(at)) runs.push(at);
  return runs;
}

/** Is the latest tick not run yet, or not run to its end? */
function isWaiting({ name, cadence }: Schedule, { runs, readAt }: KnownWork): boolean {
  const tick = cadence!.latest(readAt);
  if (tick === null) return false;
  const latest = runs.find(({ schedule }) => schedule === name) ?? null;
  const standing = standingOf(latest, tick, readAt);
  return standing === 'due' || standing === 'busy' || standing === 'later';
}

/** What waits now counts until the day is over, because it may run at any time of the day. */
function isSameDay(from: Instant, { readAt }: KnownWork): boolean {
  return dayStart(from) === dayStart(readAt);
}

type Counted = {
  readonly work: KnownWork;
  /** Runs before this instant are counted. */
  readonly end: Instant;
  /** The average number of requests a day after `end`. */
  readonly perDay: number;
};

function needOf(name: string, coming: readonly ComingRequests[], { work, end, perDay }: Counted): Need {
  const { readAt } = work;
  const instants = coming.map(({ at }) => at);
  const sums = [0];
  for (const { requests } of coming) sums.push(sums.at(-1)! + requests);
  const before = (at: Instant) => sums[firstAtLeast(instants, at)]!;
  const ticks = (from: Instant, to: Instant) => {
    const gone = from <= readAt ? 0 : before(from) - (isSameDay(from, work) ? before(readAt + 1) : 0);
    const known = from >= end ? 0 : before(Math.min(to, end)) - gone;
    return known + (perDay * Math.max(0, to - Math.max(from, end))) / DAY;
  };
  return { name, requests: 1, ticks };
}
