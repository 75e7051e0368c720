/** The lease of one caller: how many requests the process holds for it, and how many to ask for next. Values only, no database. */
import type { Instant } from '../../clock.ts';
import type { Allowance } from '../../contract/plan/access.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../../core/calendar.ts';
import type { Advance, GiveBack } from '../../store/callers/api-usage.ts';

/** Requests in a calendar month and a UTC day; null: unlimited. */
export type QuotaLimits = { readonly perMonth: number | null; readonly perDay: number | null };

/** Requests in the first lease; twice as many each time a caller needs the next one within `BUSY_MS`, up to `MAX_LEASE`. */
const MIN_LEASE = 4;
const MAX_LEASE = 256;
const BUSY_MS = 5_000;
/** A lease is at most one in so many of the requests that a caller has left, so that a crash costs little. */
const LEASE_SHARE = 50;

export type Lease = {
  month: Instant;
  day: Instant;
  limits: QuotaLimits;
  unused: number;
  /** Used this month, and not yet reported to the database. */
  unreported: number;
  size: number;
  renewedAt: Instant;
  usedAt: Instant;
  renewing: Promise<void> | null;
  /** What the database said at the last renewal. */
  known: Advance | null;
};

/**
 * Moves a lease to the windows of this month and day. Requests leased in a month that is over are void; those leased on a day that is over
 * still count in their month. Returns what to report and to return to the database for the windows before; null: nothing.
 */
export function moveLease(lease: Lease, month: Instant, day: Instant): Omit<GiveBack, 'subject'> | null {
  if (month === lease.month && day === lease.day) return null;
  const before = { month: lease.month, day: lease.day };
  const isValid = month === before.month && lease.limits.perDay === null;
  const unused = isValid ? 0 : lease.unused;
  const used = lease.unreported;
  Object.assign(lease, { month, day, unused: lease.unused - unused, unreported: 0 });
  if (!isValid) lease.known = null;
  return unused + used > 0 && month === before.month ? { ...before, unused, used } : null;
}

/** Requests in the next lease; a busy caller's is twice as large as the one before. */
export function nextSize(lease: Lease, now: Instant): number {
  lease.size = isRecent(now, lease.renewedAt, BUSY_MS) ? Math.min(MAX_LEASE, lease.size * 2) : MIN_LEASE;
  const left = Math.min(...windowsOf(lease).map((window) => window.left));
  return Math.max(MIN_LEASE, Math.min(lease.size, Math.floor(left / LEASE_SHARE)));
}

/** The moment to renew a large lease: before it is used up, so that no request waits. */
export function isRunningLow({ unused, size }: Lease): boolean {
  return unused === Math.floor(size / 4) && size > MIN_LEASE;
}

export function exhaustedWindow(lease: Lease): 'month' | 'day' {
  return windowsOf(lease).find(({ left }) => left <= 0)?.name ?? 'day';
}

export function newLease(limits: QuotaLimits, now: Instant): Lease {
  return {
    month: monthStart(now),
    day: dayStart(now),
    limits,
    unused: 0,
    unreported: 0,
    size: MIN_LEASE,
    renewedAt: Number.NEGATIVE_INFINITY,
    usedAt: now,
    renewing: null,
    known: null,
  };
}

/** A clock that was set back makes nothing recent. */
export function isRecent(now: Instant, since: Instant, ms: number): boolean {
  return now >= since && now - since < ms;
}

/** The limited windows of a caller; `left`: requests that no process has taken yet. */
function windowsOf({ limits: { perMonth, perDay }, known, month, day }: Lease) {
  const windows: { name: 'month' | 'day'; limit: number; left: number; endsAt: Instant }[] = [];
  if (perMonth !== null)
    windows.push({
      name: 'month',
      limit: perMonth,
      left: perMonth - (known?.monthSpent ?? 0),
      endsAt: monthReset(month),
    });
  if (perDay !== null)
    windows.push({ name: 'day', limit: perDay, left: perDay - (known?.daySpent ?? 0), endsAt: dayReset(day) });
  return windows;
}

/** Of the window with fewer requests left; null without a limit. */
export function allowanceOf(lease: Lease, now: Instant): Allowance | null {
  const allowances = windowsOf(lease).map(({ limit, left, endsAt }) => ({
    limit,
    remaining: Math.max(0, left + lease.unused),
    resetSeconds: Math.max(1, Math.ceil((endsAt - now) / 1000)),
  }));
  const [month, day] = allowances;
  if (month === undefined || day === undefined) return month ?? null;
  return day.remaining <= month.remaining ? day : month;
}
