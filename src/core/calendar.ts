/** The UTC days and calendar months that quotas are counted in. */
import type { Instant } from '../clock.ts';
import { DAY } from './interval.ts';

/** The start of the UTC day that holds `at`. */
export function dayStart(at: Instant): Instant {
  return Math.floor(at / DAY) * DAY;
}

/** The start of the UTC day after. */
export function dayReset(at: Instant): Instant {
  return dayStart(at) + DAY;
}

/** The start of the UTC month that holds `at`. */
export function monthStart(at: Instant): Instant {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** The start of the UTC month after. */
export function monthReset(at: Instant): Instant {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
