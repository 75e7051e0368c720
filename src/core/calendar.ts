/** The UTC days and calendar months that quotas are counted in, and the weeks and months that candles are made of. */
import type { Instant } from '../clock.ts';
import { DAY } from './interval.ts';
import { normalize, type Span, type Spans } from './span.ts';

/** The start of the UTC day that holds `at`. */
export function dayStart(at: Instant): Instant {
  return Math.floor(at / DAY) * DAY;
}

/** The start of the next UTC day. */
export function dayReset(at: Instant): Instant {
  return dayStart(at) + DAY;
}

/** The start of the UTC month that holds `at`. */
export function monthStart(at: Instant): Instant {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** The start of the next UTC month. */
export function monthReset(at: Instant): Instant {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** Weeks begin on Monday, in UTC. */
export const PERIODS = ['week', 'month'] as const;
export type Period = (typeof PERIODS)[number];

const WEEK = 7 * DAY;
/** The first Monday of 1970. */
const A_MONDAY = 4 * DAY;

const START: Readonly<Record<Period, (at: Instant) => Instant>> = {
  week: (at) => Math.floor((at - A_MONDAY) / WEEK) * WEEK + A_MONDAY,
  month: monthStart,
};

/** The weeks or months that lie completely in these spans. */
export function periodsWithin(spans: Spans, period: Period): Span[] {
  const start = START[period];
  const startFrom = (at: Instant) => (start(at) === at ? at : start(start(at) + (period === 'week' ? WEEK : 32 * DAY)));
  return normalize(spans.map(({ from, to }) => ({ from: startFrom(from), to: start(to) })));
}
