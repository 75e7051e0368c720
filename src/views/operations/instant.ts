/** Instants as the views give them: an open end is null. */
import type { Instant } from '../../clock.ts';

/** From seconds since 1970, as `extract(epoch from …)::float8` gives them. */
export function toInstant(seconds: number | null): Instant | null {
  return seconds === null || !Number.isFinite(seconds) ? null : Math.round(seconds * 1000);
}
