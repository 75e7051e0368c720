/** How fast we may ask: the plan's pace with a hair's breadth to spare, slower after 429s, and slowly back again. */
import type { Instant } from '../clock.ts';
import { DAY } from '../core/interval.ts';

/** One percent under the plan's limit: a timer or a network that jitters by some ms must not put one too many into a second. */
export const MARGIN = 1.01;
export const SLOWEST = 32;
/** How fast the pace recovers. */
export const HALF_LIFE_MS = 60_000;

/** Between two requests at full pace, in ms; 0 without a limit. */
export function gapMs(perSecond: number | null): number {
  return perSecond === null ? 0 : (1000 / perSecond) * MARGIN;
}

/** The most that the full pace lets through in a day; null without a limit. */
export function requestsPerDayAt(perSecond: number | null): number | null {
  return perSecond === null ? null : Math.floor(DAY / gapMs(perSecond));
}

/** How many times slower than the plan we go now: what the last 429 left, its distance to 1 halved every minute since the hold. */
export function slowdownAt(factor: number, limitedUntil: Instant, now: Instant): number {
  return 1 + (factor - 1) * 2 ** -Math.min(60, Math.max(0, (now - limitedUntil) / HALF_LIFE_MS));
}
