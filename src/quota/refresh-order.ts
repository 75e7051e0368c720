/**
 * Which tracked series are refreshed next, and how many now: pure functions that carry out the plan of the tiers (`achievable-ages.ts`).
 * The service calls them at each run of its schedule, and the forecast (`coming-requests.ts`) at each run that is still to come.
 *
 * A series has a refresh time in each `refreshAfterMs`, and the refresh times of the series of a tier are spread evenly. A series that is refreshed
 * late, because something was away or requests were short, keeps its refresh times: it is not due later ever after, and series that waited together
 * are not due together again. So each refresh time costs one request, whatever happened before.
 */
import type { Instant } from '../clock.ts';
import { dayReset, dayStart } from '../core/calendar.ts';
import { DAY, MINUTE } from '../core/interval.ts';

/** A series, or some series that are alike. */
export type RefreshCandidate = {
  readonly priority: number;
  /** From one refresh time to the next. */
  readonly refreshAfterMs: number;
  /** The refresh time for which it waits; null: it was never refreshed. */
  readonly dueAt: Instant | null;
  /** How old it may become, as told. After the quota has grown, that is longer than its time and a tick. Absent: just so long. */
  readonly achievableAgeMs?: number;
  /** Of its coin; 0: none. */
  readonly rank: number;
  readonly seriesId: number;
};

/**
 * Whether it must be refreshed at this run, or it is older than was told at the next one. False: it is late already (so is one that was never
 * refreshed), or it can wait, because its time has become shorter. `tickMs`: the longest time between two runs.
 */
export function isOnTime(
  {
    dueAt,
    refreshAfterMs,
    achievableAgeMs = 0,
  }: Pick<RefreshCandidate, 'dueAt' | 'refreshAfterMs' | 'achievableAgeMs'>,
  { now, tickMs }: { readonly now: Instant; readonly tickMs: number },
): boolean {
  if (dueAt === null) return false;
  // Less than a step comes of rounding.
  const mayWaitMs = roundDown(Math.max(0, achievableAgeMs - tickMs - refreshAfterMs), refreshStepMs(refreshAfterMs));
  return now - dueAt >= mayWaitMs && now - dueAt <= mayWaitMs + tickMs;
}

/** How many series may be refreshed at a run; infinite: any number. */
export type RefreshRoom = {
  /** All together. */
  readonly all: number;
  /** Of these, series that are not on time (`isOnTime`). */
  readonly late: number;
};

/**
 * The series of a run, most urgent first, and of a candidate that stands for several, how many. The highest priority comes first; within it
 * series that were refreshed before, the latest one relative to its time first; then those that were never refreshed, the shortest time first, then by
 * rank. A series that is on time is refreshed in any case: the plan counts on it. The others get what the day has beside these.
 */
export function chooseDue<C extends RefreshCandidate>(
  candidates: readonly C[],
  { now, tickMs, room, countOf = () => 1 }: DueTerms<C>,
): { readonly candidate: C; readonly count: number }[] {
  const ranked = candidates
    .filter(({ dueAt }) => dueAt === null || dueAt <= now)
    .map((c) => ({
      c,
      isOther: !isOnTime(c, { now, tickMs }),
      lateness: c.dueAt === null ? -1 : (now - c.dueAt) / c.refreshAfterMs,
    }))
    .sort(
      (a, b) =>
        b.c.priority - a.c.priority ||
        b.lateness - a.lateness ||
        a.c.refreshAfterMs - b.c.refreshAfterMs ||
        rankOf(a.c) - rankOf(b.c) ||
        a.c.seriesId - b.c.seriesId,
    );
  let { all } = room;
  let late = room.late - ranked.reduce((sum, { c, isOther }) => (isOther ? sum : sum + countOf(c)), 0);
  return ranked.flatMap(({ c, isOther }) => {
    const count = Math.max(0, Math.min(countOf(c), all, isOther ? late : all));
    if (count === 0) return [];
    all -= count;
    if (isOther) late -= count;
    return [{ candidate: c, count }];
  });
}

export type DueTerms<C> = {
  readonly now: Instant;
  readonly tickMs: number;
  readonly room: RefreshRoom;
  /** How many series a candidate stands for. */
  readonly countOf?: (candidate: C) => number;
};

type RefreshTimes = {
  readonly seriesId: number;
  readonly refreshAfterMs: number;
  /** Its last refresh time; null: it was never refreshed. */
  readonly refreshAt: Instant | null;
};

/**
 * The refresh time from which the next one counts, of a series that is refreshed at `now`: the last one that has passed.
 * Series that are refreshed for the first time are refreshed together; so their second refresh is spread evenly over their time.
 */
export function lastRefreshTime({ seriesId, refreshAfterMs, refreshAt }: RefreshTimes, now: Instant): Instant {
  if (refreshAt === null) return roundDown(now - refreshAfterMs * partOf(seriesId), MINUTE);
  const passed = Math.floor((now - refreshAt) / refreshAfterMs) * refreshAfterMs;
  return roundDown(refreshAt + passed, refreshStepMs(refreshAfterMs));
}

/**
 * Refresh times are multiples of this. Runs come at whole minutes, so the forecast knows at which of them a series is refreshed, and many series have
 * few different refresh times. Short times are rounded less, because that costs requests.
 */
export function refreshStepMs(refreshAfterMs: number): number {
  return refreshAfterMs >= 100 * MINUTE ? MINUTE : 1_000;
}

function roundDown(ms: number, toMs: number): number {
  return Math.floor(ms / toMs) * toMs;
}

/**
 * Where an answer is about a whole day, all series have the same refresh times: at midnight, and each `refreshAfterMs` after it. Above a day, each
 * series is refreshed on one of the days.
 */
export function lastRefreshTimeOfDay(series: RefreshTimes, now: Instant): Instant {
  const { seriesId, refreshAfterMs, refreshAt } = series;
  const days = refreshAfterMs / DAY;
  if (days <= 1) return Math.floor(now / refreshAfterMs) * refreshAfterMs;
  if (refreshAt === null) return dayStart(now) - Math.floor(days * partOf(seriesId)) * DAY;
  return dayStart(lastRefreshTime(series, now));
}

/** From 0 to 1, by multiples of the golden ratio: consecutive ids are spread as far from each other as possible. */
function partOf(seriesId: number): number {
  return (seriesId * GOLDEN) % 1;
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function rankOf({ rank }: RefreshCandidate): number {
  return rank > 0 ? rank : Number.MAX_SAFE_INTEGER;
}

/**
 * How many series may be refreshed at a run. Late ones get what the day has beside those that were refreshed already, and those that will be
 * due until midnight UTC.
 */
export function refreshRoom({
  most,
  left,
  spentToday,
  coming,
  atOnce = Number.POSITIVE_INFINITY,
}: RoomTerms): RefreshRoom {
  const all = Math.min(left, atOnce);
  const ofDay = Math.min(left, Math.floor((most ?? Number.POSITIVE_INFINITY) - spentToday));
  return { all, late: Math.min(all, ofDay - coming) };
}

export type RoomTerms = {
  /** Requests a day for refreshes; null = any number. */
  readonly most: number | null;
  /** Requests that are left of the day and the month beside what other schedules need. */
  readonly left: number;
  /** Refreshes since midnight UTC, those that wait in the queue included. */
  readonly spentToday: number;
  /** Refreshes that will be due until the last run of the day. */
  readonly coming: number;
  /** At one run. */
  readonly atOnce?: number;
};

/** Refreshes that these series are due for after the run at `now` until the last one before midnight UTC; `nextAt`: the run after it. */
export function refreshesToday(
  series: readonly { readonly dueAt: Instant | null; readonly refreshAfterMs: number; readonly series: number }[],
  { now, nextAt }: { readonly now: Instant; readonly nextAt: Instant },
): number {
  const last = dayReset(now) - (nextAt - now);
  return series.reduce((sum, { dueAt, refreshAfterMs, series }) => {
    if (dueAt === null || last <= now) return sum;
    const next = dueAt + Math.max(0, Math.floor((now - dueAt) / refreshAfterMs) + 1) * refreshAfterMs;
    return next > last ? sum : sum + series * (1 + Math.floor((last - next) / refreshAfterMs));
  }, 0);
}
