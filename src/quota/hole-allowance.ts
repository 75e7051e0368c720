/**
 * What may be spent on holes: a second answer about slots that one answer left out. It is the work of the lowest priority, so it gets only
 * quota that nobody else will need, and never more than a small share of it. Pure.
 */
import { monthReset, monthStart } from '../core/calendar.ts';
import { DAY } from '../core/interval.ts';
import { HEADROOM } from './achievable-ages.ts';
import type { QuotaState, Reserved } from './quota.ts';

/** The most that holes may take of a month. */
export const HOLES_SHARE = 1 / 20;

export type HoleAllowance = {
  /** Requests that holes may take of this month; null = any number, because neither month nor day is limited. */
  readonly share: number | null;
  /** Of this month, by holes. */
  readonly spent: number;
  /** Requests that may be sent for holes now; null = any number. */
  readonly allowed: number | null;
  /** Why nothing is allowed now; null when something is. */
  readonly waitsFor: 'hold' | 'backfills' | 'share' | 'quota' | null;
};

/**
 * The share grows evenly from the start of the month to its end: quota that is not used on the first day may still be needed on the last one.
 * Of month and day, all that the schedules have reserved is left alone, and what their retries may need besides.
 */
export function holeAllowance({
  state,
  reserved,
  spent,
  isBackfillOpen,
}: {
  readonly state: Pick<QuotaState, 'now' | 'month' | 'day' | 'hold'>;
  /** At `state.now`. */
  readonly reserved: Pick<Reserved, 'day' | 'month'>;
  /** Of this month, by holes. */
  readonly spent: number;
  /** A backfill waits or runs: it goes first. */
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
