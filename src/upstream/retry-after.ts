/** Reads how long the headers of a response ask us to wait. */
import type { Instant } from '../clock.ts';

/** The longest wait that a header can cause: no rate limit of the upstream has a longer window than a day. */
export const LONGEST_WAIT_MS = 24 * 3_600_000;

/**
 * The wait in milliseconds, 0 … `LONGEST_WAIT_MS`; null when no header names one. `Retry-After` (seconds, or a date) has precedence over
 * `RateLimit-Reset`. A date is compared with the response's own `Date`, so a wrong clock here does not matter.
 */
export function retryAfterMs(header: (name: string) => string | null, now: Instant): number | null {
  const after = header('retry-after')?.trim();
  if (after) {
    if (/^\d+(\.\d+)?$/.test(after)) return bounded(Number(after) * 1000);
    // Only the HTTP form of a date, because Date.parse would read "-5" as a year.
    const at = /^[A-Z][a-z]{2}/.test(after) ? Date.parse(after) : Number.NaN;
    const here = Date.parse(header('date') ?? '');
    if (!Number.isNaN(at)) return bounded(at - (Number.isNaN(here) ? now : here));
  }
  return rateLimitResetMs(header, now);
}

/**
 * `RateLimit-Reset` describes the window of `RateLimit-Limit`, and the upstream's window is the month (20000 was seen).
 * So the header counts only when that window is used up or, if this is unknown, when it ends within an hour, like the window of a 429.
 */
function rateLimitResetMs(header: (name: string) => string | null, now: Instant): number | null {
  const reset = (header('ratelimit-reset') ?? header('x-ratelimit-reset'))?.trim();
  if (!reset || !/^\d+(\.\d+)?$/.test(reset)) return null;
  const seconds = Number(reset);
  // Some servers send the instant instead of the wait.
  const wait = seconds > 1e9 ? seconds * 1000 - now : seconds * 1000;
  const remaining = (header('ratelimit-remaining') ?? header('x-ratelimit-remaining'))?.trim();
  if (remaining === undefined) return wait <= 3_600_000 ? bounded(wait) : null;
  return Number(remaining) > 0 ? null : bounded(wait);
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), LONGEST_WAIT_MS);
}
