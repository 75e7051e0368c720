/**
 * Which tracked series are refreshed next, and how many now: pure functions that carry out the plan of the tiers (`achievable-ages.ts`).
 */
import type { Instant } from '../clock.ts';
import { dayStart } from '../core/calendar.ts';
import { DAY, INTERVAL_MS, type Interval } from '../core/interval.ts';
import { HEADROOM } from './achievable-ages.ts';

export type RefreshCandidate = {
  readonly seriesId: number;
  readonly priority: number;
  readonly interval: Interval;
  /** By the plan of its tier, it is due so long after it was asked. */
  readonly refreshAfterMs: number;
  /** Null: never. */
  readonly askedAt: Instant | null;
  /** For a refresh before the age is reached, the age counts from here (`refreshAtAfter`); null: never refreshed. */
  readonly refreshAt: Instant | null;
  /** Of its coin; 0: none. */
  readonly rank: number;
};

/** If there is room, a series is refreshed at this part of its time: waiting for a permit, and the answer, take time. */
export const EAGER = 0.95;

/**
 * The next series, most urgent first, at most `limit`. No series comes before its time, so that each request brings as many rows as its
 * age allows. The order:
 *
 * 1. Series that have reached their age; the one that is oldest relative to its age first. So a lack of requests is shared fairly, and
 *    the plan has made the ages of higher priorities no longer than those of lower ones.
 * 2. Series that were never refreshed; the shortest age first, then by priority and rank. The plan counts them, so the series of step 1
 *    leave at least their part, and none starves.
 * 3. Series that are nearly due.
 */
export function chooseDueSeries<C extends RefreshCandidate>(
  candidates: readonly C[],
  now: Instant,
  limit: number,
): C[] {
  const ranked = candidates.map((c) => {
    if (c.askedAt === null) return { c, ratio: 1, stage: 1, rows: 0 };
    const rows = (now - c.askedAt) / INTERVAL_MS[c.interval];
    const ratio = (now - c.askedAt) / c.refreshAfterMs;
    if (ratio >= 1) return { c, ratio, stage: 0, rows };
    const early = (now - (c.refreshAt ?? c.askedAt)) / c.refreshAfterMs;
    return { c, ratio: early, stage: early >= EAGER ? 2 : 3, rows };
  });
  return ranked
    .filter(({ stage }) => stage < 3)
    .sort(
      (a, b) =>
        a.stage - b.stage ||
        b.ratio - a.ratio ||
        (a.stage === 1 ? a.c.refreshAfterMs - b.c.refreshAfterMs : 0) ||
        b.c.priority - a.c.priority ||
        b.rows - a.rows ||
        rankOf(a.c) - rankOf(b.c) ||
        a.c.seriesId - b.c.seriesId,
    )
    .slice(0, Math.max(0, limit))
    .map(({ c }) => c);
}

/**
 * The `refreshAt` of a series that is refreshed at `now`: `now` itself. But series that are refreshed for the first time are refreshed
 * together, and would be due together ever after. So their second refreshes are spread evenly over the age: where there is room, each
 * comes some time earlier.
 */
export function refreshAtAfter(
  { seriesId, refreshAfterMs, askedAt }: Pick<RefreshCandidate, 'seriesId' | 'refreshAfterMs' | 'askedAt'>,
  now: Instant,
): Instant {
  // Multiples of the golden ratio: consecutive ids are spread as far from each other as possible.
  return askedAt === null ? now - Math.floor(refreshAfterMs * ((seriesId * GOLDEN) % 1)) : now;
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function rankOf({ rank }: RefreshCandidate): number {
  return rank > 0 ? rank : Number.MAX_SAFE_INTEGER;
}

/**
 * The requests of this much time ahead may be sent now: as much as the day has beside what is planned. So a day begins with some, for what is due
 * then, and its evening keeps what the plan needs.
 */
const AHEAD_MS = (1 - HEADROOM) * DAY;

/**
 * How many series may be refreshed now, when `spentToday` were refreshed since midnight UTC: never more than `perDay` in a day, spread
 * over the day, so that something is left for the evening. `nextAt`: when this is called again. Those for answers about the last full day may
 * all be sent at midnight.
 */
export function freshnessRoom({
  perDay,
  dailyRequests = 0,
  spentToday,
  now,
  nextAt,
}: {
  /** Null = any number. */
  readonly perDay: number | null;
  readonly dailyRequests?: number;
  readonly spentToday: number;
  readonly now: Instant;
  readonly nextAt: Instant;
}): number {
  if (perDay === null) return Number.POSITIVE_INFINITY;
  const until = Math.max(nextAt, now + AHEAD_MS);
  const share = Math.min(1, (until - dayStart(now)) / DAY);
  const atMidnight = Math.min(perDay, dailyRequests);
  return Math.max(0, Math.floor(atMidnight + (perDay - atMidnight) * share) - spentToday);
}
