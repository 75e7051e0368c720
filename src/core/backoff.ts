/** Capped exponential backoff with full jitter: how long to wait before each retry. */

/**
 * Milliseconds to wait before retry number `attempt` (0 is the first), a whole number between 0 and the bound of this attempt.
 * `random` is between 0 and 1, as `Math.random()` returns it. With 1 the result is the bound itself, for a caller that needs the longest wait.
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
 * A `random` for waits that are stored, shown as "not before …", or computed by every process from the same row: all processes must compute
 * the same instant. Also, a wait near zero after a refusal would spend a request on the same refusal.
 */
export const WHOLE_BOUND = 1;
