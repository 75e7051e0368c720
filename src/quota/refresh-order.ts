/**
 * Chooses which tracked series are refreshed next, and how many now: pure functions that carry out the plan of the tiers (`achievable-ages.ts`).
 * The service calls them at each run of its schedule, and the forecast (`coming-requests.ts`) for each coming run.
 *
 * A series has one refresh time in every `refreshAfterMs`; the refresh times of a tier's series are spread evenly. A series that is refreshed late,
 * because of an outage or too few requests, keeps its refresh times. So its later refreshes are not late, and series that waited together
 * are not due together again. Each refresh time costs one request, independent of what happened before.
 */
import type { Instant } from '../clock.ts';
import { dayReset, dayStart } from '../core/calendar.ts';
import { DAY, MINUTE } from '../core/interval.ts';

/** A series, or several series with the same terms. */
export type RefreshCandidate = {
  readonly priority: number;
  /** From one refresh time to the next. */
  readonly refreshAfterMs: number;
  /** The next refresh time; null when it was never refreshed. */
  readonly dueAt: Instant | null;
  /** The promised age. After the quota has grown, it is longer than `refreshAfterMs` and a tick together. Absent: equal to these. */
  readonly achievableAgeMs?: number;
  /** The rank of the coin; 0 when it has none. */
  readonly rank: number;
  readonly seriesId: number;
};

/**
 * True when the series must be refreshed at this run, because it would be older than promised at the next one. False when it is late already
 * (a series that was never refreshed is late), or can wait, because its `refreshAfterMs` became shorter. `tickMs` is the longest time between runs.
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
  // A difference of less than a step is caused by rounding.
  const mayWaitMs = roundDown(Math.max(0, achievableAgeMs - tickMs - refreshAfterMs), refreshStepMs(refreshAfterMs));
  return now - dueAt >= mayWaitMs && now - dueAt <= mayWaitMs + tickMs;
}

/** How many series may be refreshed at a run; infinite means any number. */
export type RefreshRoom = {
  readonly all: number;
  /** The part of `all` for series that are not on time (`isOnTime`). */
  readonly late: number;
};

/**
 * The series of a run, most urgent first; for a candidate that stands for several series, also how many of them. The highest priority comes first.
 * Within a priority, series that were refreshed before come first, the one that is latest relative to `refreshAfterMs` before the others. Then come
 * series that were never refreshed, by `refreshAfterMs` and then by rank. Series that are on time are refreshed as far as `room.all` allows, because
 * the plan counts on it; the others get the rest of `room.late`.
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

type DueTerms<C> = {
  readonly now: Instant;
  readonly tickMs: number;
  readonly room: RefreshRoom;
  /** The number of series that a candidate stands for. */
  readonly countOf?: (candidate: C) => number;
};

type RefreshTimes = {
  readonly seriesId: number;
  readonly refreshAfterMs: number;
  /** The last refresh time; null when the series was never refreshed. */
  readonly refreshAt: Instant | null;
};

/**
 * The last refresh time up to `now`, for a series that is refreshed at `now`. The next one is `refreshAfterMs` later.
 * First refreshes of many series happen together; so the second refreshes are spread evenly over `refreshAfterMs`.
 */
export function lastRefreshTime({ seriesId, refreshAfterMs, refreshAt }: RefreshTimes, now: Instant): Instant {
  if (refreshAt === null) return roundDown(now - refreshAfterMs * partOf(seriesId), MINUTE);
  const passed = Math.floor((now - refreshAt) / refreshAfterMs) * refreshAfterMs;
  return roundDown(refreshAt + passed, refreshStepMs(refreshAfterMs));
}

/**
 * Refresh times are multiples of this step. Runs happen at whole minutes, so the forecast knows the run that refreshes a series, and many series
 * share few different refresh times. Short times are rounded less, because rounding costs requests.
 */
export function refreshStepMs(refreshAfterMs: number): number {
  return refreshAfterMs >= 100 * MINUTE ? MINUTE : 1_000;
}

function roundDown(ms: number, toMs: number): number {
  return Math.floor(ms / toMs) * toMs;
}

/**
 * The same for answers about whole days. All series then have the same refresh times: midnight, and every `refreshAfterMs` after it. If
 * `refreshAfterMs` is longer than a day, each series is refreshed at midnight of one of these days.
 */
export function lastRefreshTimeOfDay(series: RefreshTimes, now: Instant): Instant {
  const { seriesId, refreshAfterMs, refreshAt } = series;
  const days = refreshAfterMs / DAY;
  if (days <= 1) return Math.floor(now / refreshAfterMs) * refreshAfterMs;
  if (refreshAt === null) return dayStart(now) - Math.floor(days * partOf(seriesId)) * DAY;
  return dayStart(lastRefreshTime(series, now));
}

/** A number from 0 to 1 for each series. Multiples of the golden ratio put consecutive ids as far from each other as possible. */
function partOf(seriesId: number): number {
  return (seriesId * GOLDEN) % 1;
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function rankOf({ rank }: RefreshCandidate): number {
  return rank > 0 ? rank : Number.MAX_SAFE_INTEGER;
}

/**
 * How many series may be refreshed at a run. Late series get the requests of the day without those for refreshes already made and for refreshes
 * that will be due until midnight UTC.
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

type RoomTerms = {
  /** Requests a day for refreshes; null = any number. */
  readonly most: number | null;
  /** Requests left in the day and the month, without those that other schedules need. */
  readonly left: number;
  /** Refreshes since midnight UTC, including those that wait in the queue. */
  readonly spentToday: number;
  /** Refreshes that will be due until the last run of the day. */
  readonly coming: number;
  /** The most refreshes at one run. */
  readonly atOnce?: number;
};

/** Refreshes of these series that are due after the run at `now`, up to the last run before midnight UTC. `nextAt` is the next run. */
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
