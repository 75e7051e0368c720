/** How many requests of a day or a month Chandler will have sent when it ends. */
import type { Instant } from '../../clock.ts';

/** Before this share of the window is over, the pace says nothing about the rest. */
const TELLING_SHARE = 0.02;

/** Two bounds, at most the limit: one adds what the schedules still need, one extends the pace so far. Null early in the window. */
export function forecastOf(window: {
  readonly start: Instant;
  readonly reset: Instant;
  readonly now: Instant;
  readonly spent: number;
  /** Null when there is no limit. */
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
