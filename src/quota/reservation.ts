/** The reservation: requests that the schedules will still need until the day and the month end. Backfills must leave them. */
import type { Instant } from '../clock.ts';
import { dayReset, monthReset } from '../core/calendar.ts';
import { MINUTE } from '../core/interval.ts';
import type { Reserved } from './quota.ts';

/** The need of one schedule: `requests` is the average at each of its ticks. */
export type Need = {
  readonly name: string;
  readonly requests: number;
  /** The number of ticks in `[from, to)`. */
  readonly ticks: (from: Instant, to: Instant) => number;
  /** True for requests about the account: the other schedules must leave these, too. */
  readonly isAccountRequest?: boolean;
};

/** Fractions of requests do not add up exactly. */
const ROUNDING = 1e-6;

/** The reservation while no process runs the schedules. */
export function nothingReserved(): Reserved {
  return { day: 0, month: 0, account: { day: 0, month: 0 } };
}

/** Requests of `needs` from `now` to the end of the UTC day and month, counted tick by tick. */
export function reservedAt(now: Instant, needs: readonly Need[]): Reserved {
  const account = needs.filter((need) => need.isAccountRequest);
  // Ticks of this minute may not have sent their requests yet. Two ticks are at least a minute apart.
  const from = Math.floor(now / MINUTE) * MINUTE;
  const day = dayReset(now);
  const month = monthReset(now);
  const sum = (some: readonly Need[], to: Instant) =>
    Math.max(
      0,
      Math.ceil(some.reduce((total, { requests, ticks }) => total + requests * ticks(from, to), 0) - ROUNDING),
    );
  return {
    day: sum(needs, day),
    month: sum(needs, month),
    account: { day: sum(account, day), month: sum(account, month) },
  };
}
