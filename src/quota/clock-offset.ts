/** How far our clock is from the database's, as well as can be known from asking it the time. */
import type { Instant } from '../clock.ts';

export type ClockOffset = {
  /**
   * The database read `there` at some moment between `askedAt` and `answeredAt` of our clock. Returns what to add to its
   * instants to get ours: the last estimate, corrected no further than this observation proves it wrong. So it does not
   * shake with the load (places in a sequence stay in place), and follows a clock that is set within one question.
   */
  observe(askedAt: Instant, answeredAt: Instant, there: Instant): number;
};

export function createClockOffset(): ClockOffset {
  let estimate = Number.POSITIVE_INFINITY;
  return {
    observe(askedAt, answeredAt, there) {
      estimate = Math.max(askedAt - there, Math.min(estimate, answeredAt - there));
      return estimate;
    },
  };
}
