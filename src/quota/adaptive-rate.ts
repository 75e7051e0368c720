/** The rate of requests: one percent below the limit of the plan. It drops after 429s and recovers slowly. */
import type { Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';

/** One percent below the plan's limit, so that jitter of some milliseconds does not put one request too many into a second. */
export const MARGIN = 1.01;
/** The rate never becomes more than this many times slower. */
export const SLOWEST = 32;
/** The time in which the rate recovers by half. */
export const HALF_LIFE_MS = 60_000;

/** Milliseconds between two requests at the full rate; 0 without a limit. */
export function gapMs(perSecond: number | null): number {
  return perSecond === null ? 0 : (1000 / perSecond) * MARGIN;
}

/** Requests a day at the full rate; null without a limit. */
export function requestsPerDayAt(perSecond: number | null): number | null {
  return perSecond === null ? null : Math.floor(DAY / gapMs(perSecond));
}

/**
 * How many times slower the rate is now than the plan's. `factor` is the value after the last 429; its distance to 1 halves every minute
 * after the hold.
 */
export function slowdownAt(factor: number, limitedUntil: Instant, now: Instant): number {
  return 1 + (factor - 1) * 2 ** -Math.min(60, Math.max(0, (now - limitedUntil) / HALF_LIFE_MS));
}
