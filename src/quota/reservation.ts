/** What the schedules will still ask until the day and the month end: backfill must leave it. */
import type { Instant } from '../clock.ts';
import { dayReset, monthReset } from '../core/calendar.ts';
import type { SetAside } from './quota.ts';

/** A schedule that asks: so many requests at each of its ticks, on average. */
export type Need = {
  readonly name: string;
  readonly requests: number;
  /** Ticks in `[from, to)`. */
  readonly ticks: (from: Instant, to: Instant) => number;
  /** They ask the account: set aside from the other schedules as well. */
  readonly asksAccount?: boolean;
};

const MINUTE = 60_000;
/** Fractions of requests do not add up exactly. */
const HAIR = 1e-6;

/** What `needs` ask from `now` to the end of the UTC day and month: exactly, tick by tick. */
export function setAsideAt(now: Instant, needs: readonly Need[]): SetAside {
  const account = needs.filter((need) => need.asksAccount);
  // What came due within this minute, the narrowest there is between two ticks, may still be on its way.
  const from = Math.floor(now / MINUTE) * MINUTE;
  const day = dayReset(now);
  const month = monthReset(now);
  const sum = (some: readonly Need[], to: Instant) =>
    Math.max(0, Math.ceil(some.reduce((total, { requests, ticks }) => total + requests * ticks(from, to), 0) - HAIR));
  return {
    day: sum(needs, day),
    month: sum(needs, month),
    account: { day: sum(account, day), month: sum(account, month) },
  };
}
