/** Capped exponential backoff with full jitter: how long to wait before each retry. */

/**
 * Milliseconds to wait before retry number `attempt` (0 is the first), a whole number between 0 and the bound of this attempt.
 * `random` is between 0 and 1, as `Math.random()` gives it; 1 gives the bound itself, for a caller that must be told the longest wait.
 */
type Backoff = (attempt: number, random: number) => number;

/**
 * The bound starts at `firstMs`, grows by `factor` (2 by default) with each attempt and never exceeds `mostMs`. The whole bound is
 * jittered, so that processes which failed in the same instant do not retry in the same instant.
 */
export function createBackoff({
  firstMs,
  mostMs,
  factor = 2,
}: {
  readonly firstMs: number;
  readonly mostMs: number;
  readonly factor?: number;
}): Backoff {
  return (attempt, random) => Math.round(random * Math.min(mostMs, firstMs * factor ** attempt));
}

/**
 * For waits that are stored, shown as "not before …", or computed anew by every process from the same row: all of them must come to
 * the same instant. After a refusal, a wait near zero would also spend a request to hear the refusal again.
 */
export const WHOLE_BOUND = 1;
