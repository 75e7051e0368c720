/** Which tracked series are asked next, and how many now. Pure: what the plan of their tiers (`freshness.ts`) comes to in practice. */
import type { Instant } from '../clock.ts';
import { dayStart } from '../core/calendar.ts';
import { DAY, INTERVAL_MS, type Interval } from '../core/interval.ts';

export type RefreshCandidate = {
  readonly seriesId: number;
  readonly priority: number;
  readonly interval: Interval;
  /** What the plan allows its tier. */
  readonly achievableAgeMs: number;
  /** Null: never. */
  readonly askedAt: Instant | null;
  /** From when its age counts for being asked early (`turnAfter`); null: never asked. */
  readonly turnAt: Instant | null;
  /** Of its coin; 0: none. */
  readonly rank: number;
};

/** Asked a little before its age is reached, if there is room: waiting for a turn, and the answer, take time. */
export const EAGER = 0.95;

/**
 * The next ones, most urgent first, at most `limit`; of one series nothing before its time, so that each request brings as many rows
 * as its age allows.
 *
 * First whoever has reached its age, the one that is oldest relative to it first: that shares a lack of requests fairly, and the plan
 * has made the ages of higher priorities no longer than those of lower ones. Then those never asked, the ones to be kept
 * youngest first, by priority and rank: the plan counts them in, so what the others leave is at least their part, and none starves. Then, with what is left over,
 * whoever is nearly due.
 */
export function chooseDueSeries<C extends RefreshCandidate>(
  candidates: readonly C[],
  now: Instant,
  limit: number,
): C[] {
  const turns = candidates.map((c) => {
    if (c.askedAt === null) return { c, ratio: 1, stage: 1, rows: 0 };
    const rows = (now - c.askedAt) / INTERVAL_MS[c.interval];
    const ratio = (now - c.askedAt) / c.achievableAgeMs;
    if (ratio >= 1) return { c, ratio, stage: 0, rows };
    const early = (now - (c.turnAt ?? c.askedAt)) / c.achievableAgeMs;
    return { c, ratio: early, stage: early >= EAGER ? 2 : 3, rows };
  });
  return turns
    .filter(({ stage }) => stage < 3)
    .sort(
      (a, b) =>
        a.stage - b.stage ||
        b.ratio - a.ratio ||
        (a.stage === 1 ? a.c.achievableAgeMs - b.c.achievableAgeMs : 0) ||
        b.c.priority - a.c.priority ||
        b.rows - a.rows ||
        rankOf(a.c) - rankOf(b.c) ||
        a.c.seriesId - b.c.seriesId,
    )
    .slice(0, Math.max(0, limit))
    .map(({ c }) => c);
}

/**
 * From when the age of a series that is asked at `now` counts for being asked early. From now on; but those asked for the first time
 * are asked together, and would be due together ever after, so their second turns are spread evenly over the age: where there is
 * room, each comes some time earlier.
 */
export function turnAfter(
  { seriesId, achievableAgeMs, askedAt }: Pick<RefreshCandidate, 'seriesId' | 'achievableAgeMs' | 'askedAt'>,
  now: Instant,
): Instant {
  // Multiples of the golden ratio: numbers in a row come to lie as far from each other as can be.
  return askedAt === null ? now - Math.floor(achievableAgeMs * ((seriesId * GOLDEN) % 1)) : now;
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function rankOf({ rank }: RefreshCandidate): number {
  return rank > 0 ? rank : Number.MAX_SAFE_INTEGER;
}

/** What the time until the next look is worth may be asked in advance, and so much always. */
const LEAST_AHEAD_MS = 15 * 60_000;

/**
 * How many may be asked now, when `spentToday` were asked since midnight UTC: never more than `perDay` in a day, spread over it,
 * so that the evening is not left with nothing. `nextAt`: when it is looked at again.
 */
export function freshnessRoom({
  perDay,
  spentToday,
  now,
  nextAt,
}: {
  /** Null = any number. */
  readonly perDay: number | null;
  readonly spentToday: number;
  readonly now: Instant;
  readonly nextAt: Instant;
}): number {
  if (perDay === null) return Number.POSITIVE_INFINITY;
  const until = Math.max(nextAt, now + LEAST_AHEAD_MS);
  const share = Math.min(1, (until - dayStart(now)) / DAY);
  return Math.max(0, Math.floor(perDay * share) - spentToday);
}
