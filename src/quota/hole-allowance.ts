/**
 * The requests that may be spent on holes, to get a second answer about slots that one answer left out. This work has the lowest priority: it
 * gets only quota that nothing else will need, and never more than a small share of the quota. Pure.
 */
import { monthReset, monthStart } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';
import { HEADROOM } from './achievable-ages.ts';
import type { QuotaState, Reserved } from './quota.ts';

/** The largest share of a month's requests for holes. */
const HOLES_SHARE = 1 / 20;

export type HoleAllowance = {
  /** Requests that holes may take in this month; null = any number, because neither month nor day is limited. */
  readonly share: number | null;
  /** Requests that holes have taken in this month. */
  readonly spent: number;
  /** Requests that may be sent for holes now; null = any number. */
  readonly allowed: number | null;
  /** Why no request is allowed now; null when requests are allowed. */
  readonly waitsFor: 'hold' | 'backfills' | 'share' | 'quota' | null;
};

/**
 * The share grows evenly from the start of the month to its end, because quota left on the first day may still be needed on the last day.
 * Holes never use the reservation of the schedules in month and day, nor what the retries of the schedules may need.
 */
export function holeAllowance({
  state,
  reserved,
  spent,
  isBackfillOpen,
}: {
  readonly state: Pick<QuotaState, 'now' | 'month' | 'day' | 'hold'>;
  /** The reservation at `state.now`. */
  readonly reserved: Pick<Reserved, 'day' | 'month'>;
  /** Requests that holes have taken in this month. */
  readonly spent: number;
  /** True while a backfill waits or runs: backfills go first. */
  readonly isBackfillOpen: boolean;
}): HoleAllowance {
  const { now, hold } = state;
  const [begin, end] = [monthStart(now), monthReset(now)];
  const monthly = state.month.limit ?? (state.day.limit === null ? null : state.day.limit * ((end - begin) / DAY));
  const share = monthly === null ? null : Math.floor(monthly * HOLES_SHARE);
  const grown = share === null ? Number.POSITIVE_INFINITY : Math.floor((share * (now - begin)) / (end - begin)) - spent;
  const left = Math.min(
    ...(['month', 'day'] as const).map((window) => {
      const { limit, spent: used } = state[window];
      return limit === null ? Number.POSITIVE_INFINITY : limit - used - Math.ceil(reserved[window] / HEADROOM);
    }),
  );
  const none = (waitsFor: HoleAllowance['waitsFor']): HoleAllowance => ({ share, spent, allowed: 0, waitsFor });
  if (hold !== null) return none('hold');
  if (isBackfillOpen) return none('backfills');
  if (left <= 0) return none('quota');
  if (grown <= 0) return none('share');
  const allowed = Math.min(left, grown);
  return { share, spent, allowed: Number.isFinite(allowed) ? allowed : null, waitsFor: null };
}
