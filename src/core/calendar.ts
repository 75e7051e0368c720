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

/** The number of the UTC month that holds `at`: months since the year 0. */
export function monthOf(at: Instant): number {
  const date = new Date(at);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

export function startOfMonth(month: number): Instant {
  return Date.UTC(1970, month - 12 * 1970);
}

/** The start of the UTC month that holds `at`. */
export function monthStart(at: Instant): Instant {
  return startOfMonth(monthOf(at));
}

/** The start of the next UTC month. */
export function monthReset(at: Instant): Instant {
  return startOfMonth(monthOf(at) + 1);
}

/** The year, quarter or month that holds `at`. `month`: its first month, from 0 to 11. */
export function periodOfMonths(at: Instant, months: 1 | 3 | 12): Span & { year: number; month: number } {
  const first = Math.floor(monthOf(at) / months) * months;
  return {
    year: Math.floor(first / 12),
    month: first % 12,
    from: startOfMonth(first),
    to: startOfMonth(first + months),
  };
}

/** Weeks begin on Monday, in UTC. */
export const PERIODS = ['week', 'month'] as const;
export type Period = (typeof PERIODS)[number];

export const WEEK = 7 * DAY;
/** The first Monday of 1970. */
export const A_MONDAY = 4 * DAY;

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
