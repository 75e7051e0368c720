/**
 * Counts the requests of callers without a write for each: the process leases some requests of a caller from the database, and returns
 * those it did not use. A process that crashes loses its leases: they stay counted, at most one lease for each caller.
 */

import type { Clock, Instant } from '../../clock.ts';
import type { Allowance } from '../../contract/plan/access.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../../core/calendar.ts';
import { createBatcher } from '../../core/concurrency/batcher.ts';
import { DAY } from '../../core/interval.ts';
import {
  type Advance,
  type AdvanceWish,
  forgetAddresses,
  type GiveBack,
  giveBack,
  takeAdvances,
} from '../../store/callers/api-usage.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** Requests in a calendar month and a UTC day; null: unlimited. */
export type QuotaLimits = { readonly perMonth: number | null; readonly perDay: number | null };

export type QuotaTaken =
  | { readonly kind: 'granted'; readonly allowance: Allowance | null }
  | { readonly kind: 'exhausted'; readonly window: 'month' | 'day'; readonly allowance: Allowance };

export type QuotaLeases = {
  /** Takes one request of a caller; resolves at once while the process holds a lease. @throws when the database is unavailable */
  take(subject: string, limits: QuotaLimits): QuotaTaken | Promise<QuotaTaken>;
  /** This month, in this process: used and not yet reported to the database; leased and not yet used. */
  ofMonth(subject: string): { readonly unreported: number; readonly unused: number };
  /** Returns every lease. */
  close(): Promise<void>;
};

/** Requests in the first lease; twice as many each time a caller needs the next one within `BUSY_MS`, up to `MAX_LEASE`. */
const MIN_LEASE = 4;
const MAX_LEASE = 256;
const BUSY_MS = 5_000;
/** A lease is at most one in so many of the requests that a caller has left, so that a crash costs little. */
const LEASE_SHARE = 50;
/** A lease is returned when its caller was silent for this long. */
const IDLE_MS = 20_000;
const REPORT_EVERY_MS = 5_000;
/** Another process may return a lease: a caller with nothing left is looked up again after this long. */
const RECHECK_MS = 2_000;

type Lease = {
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

export function createQuotaLeases({
  sql,
  clock,
  onError,
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  /** Told when a lease could not be returned: it stays counted. */
  readonly onError: (error: Error) => void;
}): QuotaLeases {
  const leases = new Map<string, Lease>();
  const stop = new AbortController();

  const leaseMore = createBatcher(async (wishes: readonly AdvanceWish[]) => {
    const now = clock.now();
    const granted = await takeAdvances(sql, wishes, { now, month: monthStart(now), day: dayStart(now) });
    const bySubject = new Map(granted.map((advance) => [advance.subject, advance]));
    return wishes.map(({ subject }) => bySubject.get(subject));
  });

  /** Requests leased in a month that is over are void; those leased on a day that is over still count in their month. */
  const moveTo = (subject: string, lease: Lease, month: Instant, day: Instant): void => {
    if (month === lease.month && day === lease.day) return;
    const before = { month: lease.month, day: lease.day };
    const isValid = month === before.month && lease.limits.perDay === null;
    const unused = isValid ? 0 : lease.unused;
    const used = lease.unreported;
    Object.assign(lease, { month, day, unused: lease.unused - unused, unreported: 0 });
    if (!isValid) lease.known = null;
    if (unused + used > 0 && month === before.month)
      giveBack(sql, [{ subject, ...before, unused, used }]).catch(onError);
  };

  const renew = async (subject: string, lease: Lease): Promise<void> => {
    const now = clock.now();
    lease.size = isWithin(now, lease.renewedAt, BUSY_MS) ? Math.min(MAX_LEASE, lease.size * 2) : MIN_LEASE;
    const left = Math.min(...windowsOf(lease).map((window) => window.left));
    const wanted = Math.max(MIN_LEASE, Math.min(lease.size, Math.floor(left / LEASE_SHARE)));
    const got = await leaseMore({ subject, wanted, ...lease.limits });
    // The next call makes a new row.
    if (got === undefined) throw new Error("a caller's row in ops.api_usage was deleted");
    moveTo(subject, lease, got.month, got.day);
    Object.assign(lease, { unused: lease.unused + got.granted, known: got, renewedAt: now });
  };
  const renewOnce = (subject: string, lease: Lease): Promise<void> => {
    lease.renewing ??= renew(subject, lease).finally(() => {
      lease.renewing = null;
    });
    return lease.renewing;
  };

  const leaseOf = (subject: string, limits: QuotaLimits, now: Instant): Lease => {
    const lease = leases.get(subject) ?? newLease(limits, now);
    leases.set(subject, lease);
    lease.limits = limits;
    moveTo(subject, lease, Math.max(lease.month, monthStart(now)), Math.max(lease.day, dayStart(now)));
    lease.usedAt = now;
    return lease;
  };

  const use = (subject: string, lease: Lease, now: Instant): QuotaTaken => {
    lease.unused--;
    lease.unreported++;
    // Renewed before it is used up, so that nobody waits.
    if (lease.unused === Math.floor(lease.size / 4) && lease.size > MIN_LEASE) renewOnce(subject, lease).catch(onError);
    return { kind: 'granted', allowance: allowanceOf(lease, now) };
  };

  const takeAfterRenewal = async (subject: string, lease: Lease): Promise<QuotaTaken> => {
    for (;;) {
      const now = clock.now();
      const isExhausted = lease.known?.granted === 0 && isWithin(now, lease.renewedAt, RECHECK_MS);
      if (!isExhausted) await renewOnce(subject, lease);
      if (lease.unused > 0) return use(subject, lease, now);
      // Otherwise calls that waited for the same lease have used it up.
      if (lease.known?.granted === 0) {
        const window = windowsOf(lease).find(({ left }) => left <= 0)?.name ?? 'day';
        return { kind: 'exhausted', window, allowance: allowanceOf(lease, now)! };
      }
    }
  };

  /** Reports what was used, and returns the leases that are over. */
  const report = async (isOver: (lease: Lease) => boolean): Promise<void> => {
    const back: GiveBack[] = [];
    for (const [subject, lease] of leases) {
      const { month, day, unreported: used } = lease;
      const isReturned = lease.renewing === null && isOver(lease);
      const unused = isReturned ? lease.unused : 0;
      lease.unreported = 0;
      if (isReturned) leases.delete(subject);
      if (unused + used > 0) back.push({ subject, month, day, unused, used });
    }
    // Not retried: a lease that is returned twice gives the caller more than the limit (api-usage.ts).
    await giveBack(sql, back).catch(onError);
  };
  const reporting = (async () => {
    let forgetAt = clock.now();
    while (!stop.signal.aborted) {
      if (clock.now() >= forgetAt) {
        forgetAt = clock.now() + DAY;
        await forgetAddresses(sql, clock.now()).catch(onError);
      }
      await clock.sleep(REPORT_EVERY_MS, stop.signal).catch(() => undefined);
      if (!stop.signal.aborted) await report((lease) => clock.now() - lease.usedAt > IDLE_MS);
    }
  })();

  return {
    take(subject, limits) {
      const now = clock.now();
      const lease = leaseOf(subject, limits, now);
      return lease.unused > 0 ? use(subject, lease, now) : takeAfterRenewal(subject, lease);
    },
    ofMonth(subject) {
      const lease = leases.get(subject);
      return lease?.month === monthStart(clock.now()) ? lease : { unreported: 0, unused: 0 };
    },
    async close() {
      stop.abort();
      await reporting;
      await Promise.allSettled([...leases.values()].map((lease) => lease.renewing));
      await report(() => true);
    },
  };
}

function newLease(limits: QuotaLimits, now: Instant): Lease {
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
function isWithin(now: Instant, since: Instant, ms: number): boolean {
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
function allowanceOf(lease: Lease, now: Instant): Allowance | null {
  const allowances = windowsOf(lease).map(({ limit, left, endsAt }) => ({
    limit,
    remaining: Math.max(0, left + lease.unused),
    resetSeconds: Math.max(1, Math.ceil((endsAt - now) / 1000)),
  }));
  const [month, day] = allowances;
  if (month === undefined || day === undefined) return month ?? null;
  return day.remaining <= month.remaining ? day : month;
}
