/** Capped exponential backoff with full jitter: how long to wait before each retry. */

/**
 * Milliseconds to wait before retry number `attempt` (0 is the first), a whole number between 0 and the bound of this attempt.
 * `random` is between 0 and 1, as `Math.random()` gives it; 1 gives the bound itself, for a caller that must be told the longest wait.
 */
export type Backoff = (attempt: number, random: number) => number;

/**
 * The bound starts at `firstMs`, doubles with each attempt and never exceeds `mostMs`. The whole bound is jittered, so that processes
 * which failed in the same instant do not retry in the same instant.
 */
export function createBackoff({ firstMs, mostMs }: { readonly firstMs: number; readonly mostMs: number }): Backoff {
  return (attempt, random) => Math.round(random * Math.min(mostMs, firstMs * 2 ** Math.min(attempt, LARGEST_EXPONENT)));
}

/** The largest power of two that is a finite number. */
const LARGEST_EXPONENT = 1023;
