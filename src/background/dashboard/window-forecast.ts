/** How many requests of a day or a month will have been sent when it ends. */
import type { Instant } from '../../clock.ts';

/** Too little of the window is over to tell how it goes on. */
const TELLING_SHARE = 0.02;

/** At least what the schedules still send; at most that at the pace so far, when it is more. Never above the limit. */
export function forecastOf(window: {
  readonly start: Instant;
  readonly reset: Instant;
  readonly now: Instant;
  readonly spent: number;
  /** Null: unlimited. */
  readonly limit: number | null;
  readonly reserved: number;
}) {
  const { start, reset, now, spent, reserved } = window;
  const limit = window.limit ?? Number.POSITIVE_INFINITY;
  const share = (now - start) / (reset - start);
  if (!(share >= TELLING_SHARE)) return null;
  const [least, most] = [spent + reserved, spent / share].sort((a, b) => a - b);
  return { least: Math.round(Math.min(limit, least!)), most: Math.round(Math.min(limit, most!)) };
}
