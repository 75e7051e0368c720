/** How many requests of a day or a month Chandler will have sent when it ends. */
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import { isLeaseAlive, leaseEnd } from '../../store/work/lease.ts';
import type { BackfillRow } from '../../views/backfills/backfills.ts';

/** Before this share of the window is over, the pace says nothing about the rest. */
const TELLING_SHARE = 0.02;

/**
 * Two bounds, at most the limit: one adds what the schedules and the open backfills still need, one extends the pace so far. Null early in the
 * window.
 */
export function forecastOf(window: {
  readonly start: Instant;
  readonly reset: Instant;
  readonly now: Instant;
  readonly spent: number;
  /** Null when there is no limit. */
  readonly limit: number | null;
  /** What the schedules still need. */
  readonly reserved: number;
  /** What the open backfills still need, in this window or later. */
  readonly open: number;
  /** Requests per second. Null when there is no limit. */
  readonly perSecond: number | null;
  /** The present day: its limit also holds on the other days of a month. */
  readonly day: { readonly limit: number | null; readonly spent: number; readonly reset: Instant };
}) {
  const { start, reset, now, spent, reserved, open, perSecond, day } = window;
  const limit = window.limit ?? Number.POSITIVE_INFINITY;
  const share = (now - start) / (reset - start);
  if (!(share >= TELLING_SHARE)) return null;
  const ofRate = perSecond === null ? Number.POSITIVE_INFINITY : perSecond * ((reset - now) / 1_000);
  const ofDays =
    day.limit === null
      ? Number.POSITIVE_INFINITY
      : Math.max(0, day.limit - day.spent) + day.limit * ((reset - day.reset) / DAY);
  const [least, most] = [spent + Math.min(reserved + open, ofRate, ofDays), spent / share].sort((a, b) => a - b);
  return { least: Math.round(Math.min(limit, least!)), most: Math.round(Math.min(limit, most!)) };
}

/** What backfills will request on their own. A paused one waits until somebody resumes it, and one whose command was killed until somebody runs it again. */
export function requestsOfOpen(backfills: readonly BackfillRow[], now: Instant): number {
  const isOver = ({ state, isDetached, heartbeatAt }: BackfillRow) =>
    state === 'paused' ||
    (state === 'running' && !isDetached && !isLeaseAlive(heartbeatAt === null ? null : leaseEnd(heartbeatAt), now));
  return backfills.reduce((sum, one) => sum + (isOver(one) ? 0 : (one.leftRequests ?? 0)), 0);
}
