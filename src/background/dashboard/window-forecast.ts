/** How many requests of a day or a month Chandler will have sent when it ends. */
import type { Instant } from '../../clock.ts';
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
}) {
  const { start, reset, now, spent, reserved } = window;
  const limit = window.limit ?? Number.POSITIVE_INFINITY;
  const share = (now - start) / (reset - start);
  if (!(share >= TELLING_SHARE)) return null;
  const open = Math.min(window.open, (window.perSecond ?? Number.POSITIVE_INFINITY) * ((reset - now) / 1_000));
  const [least, most] = [spent + reserved + open, spent / share].sort((a, b) => a - b);
  return { least: Math.round(Math.min(limit, least!)), most: Math.round(Math.min(limit, most!)) };
}

/** What backfills will request on their own. A paused one waits until somebody resumes it. */
export function requestsOfOpen(backfills: readonly BackfillRow[]): number {
  return backfills.reduce((sum, { state, leftRequests }) => sum + (state === 'paused' ? 0 : (leftRequests ?? 0)), 0);
}
