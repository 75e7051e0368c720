/**
 * Counts the requests of callers without one database write per request: the process leases some requests of a caller from the database,
 * and returns those it did not use. When a process crashes, its leases stay counted: at most one lease for each caller is lost.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Allowance } from '../../contract/plan/access.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../../core/calendar.ts';
import { createBatcher } from '../../core/concurrency/batcher.ts';
import { DAY } from '../../core/interval.ts';
import { forgetFullBuckets } from '../../store/callers/api-pace.ts';
import {
  forgetAddresses,
  type LeaseGrant,
  type LeaseReturn,
  type LeaseWish,
  returnLeases,
  takeLeases,
} from '../../store/callers/api-usage.ts';
import type { Sql } from '../../store/connection/connect.ts';

/** Requests in a calendar month and a UTC day; null: unlimited. */
export type QuotaLimits = { readonly perMonth: number | null; readonly perDay: number | null };

export type QuotaTaken =
  | { readonly kind: 'granted'; readonly allowance: Allowance | null }
  | { readonly kind: 'exhausted'; readonly window: 'month' | 'day'; readonly allowance: Allowance };

type QuotaLeases = {
  /** Takes one request of a caller's quota; returns at once while the process holds a lease. @throws when the database is unavailable */
  take(subject: string, limits: QuotaLimits): QuotaTaken | Promise<QuotaTaken>;
  /**
   * Returns the caller's usage in the database, as `read` returns it, and what this process holds besides it this month. `unreported` requests are
   * used and not yet reported to the database; `unused` ones are leased and not yet used. It reads again if the lease changed meanwhile.
   */
  monthOf<T>(subject: string, read: () => Promise<T>): Promise<{ readonly stored: T } & Holding>;
  /** Returns every lease. */
  close(): Promise<void>;
};

/** The process returns a lease when its caller has sent no request for this long. */
const IDLE_MS = 20_000;
const REPORT_EVERY_MS = 5_000;
/** Another process may return a lease, so a caller with nothing left is looked up again after this long. */
const RECHECK_MS = 2_000;

/** Maximum number of reads in `monthOf`: a busy caller's lease may be renewed during every read. */
const MOST_READS = 3;

type Holding = { readonly unreported: number; readonly unused: number };

type QuotaLeaseDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** Called when a lease could not be returned. The lease stays counted. */
  readonly onError: (error: Error) => void;
};

export function createQuotaLeases(deps: QuotaLeaseDeps): QuotaLeases {
  const { sql, clock, onError } = deps;
  const leases = new Map<string, Lease>();
  const stop = new AbortController();
  /** The last report to the database. */
  let reported: Promise<unknown> = Promise.resolve();

  const { moveTo, renewOnce } = createRenewal(deps);

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
    if (isRunningLow(lease)) renewOnce(subject, lease).catch(onError);
    return { kind: 'granted', allowance: allowanceOf(lease, now) };
  };

  const takeAfterRenewal = async (subject: string, lease: Lease): Promise<QuotaTaken> => {
    for (;;) {
      const now = clock.now();
      const isExhausted = lease.known?.granted === 0 && isRecent(now, lease.renewedAt, RECHECK_MS);
      if (!isExhausted) await renewOnce(subject, lease);
      if (lease.unused > 0) return use(subject, lease, now);
      // Otherwise other calls that waited for the same lease have used it up, so it is renewed again.
      if (lease.known?.granted === 0) {
        return { kind: 'exhausted', window: exhaustedWindow(lease), allowance: allowanceOf(lease, now)! };
      }
    }
  };

  /** Reports the used requests, and returns the leases for which `isOver` is true. */
  const report = async (isOver: (lease: Lease) => boolean): Promise<void> => {
    const back: LeaseReturn[] = [];
    for (const [subject, lease] of leases) {
      const { month, day, unreported: used } = lease;
      const isReturned = lease.renewing === null && isOver(lease);
      const unused = isReturned ? lease.unused : 0;
      lease.unreported = 0;
      if (isReturned) leases.delete(subject);
      if (unused + used > 0) back.push({ subject, month, day, unused, used });
    }
    // There is no retry: a lease that is returned twice gives the caller more than the limit (api-usage.ts).
    reported = returnLeases(sql, back).catch(onError);
    await reported;
  };
  const holdingOf = (lease: Lease | undefined): Holding =>
    lease?.month === monthStart(clock.now())
      ? { unreported: lease.unreported, unused: lease.unused }
      : { unreported: 0, unused: 0 };
  const reporting = reportRegularly(deps, stop.signal, report);

  return {
    take(subject, limits) {
      const now = clock.now();
      const lease = leaseOf(subject, limits, now);
      return lease.unused > 0 ? use(subject, lease, now) : takeAfterRenewal(subject, lease);
    },
    async monthOf(subject, read) {
      for (let attempt = 1; ; attempt++) {
        await reported;
        // The call that waits for the renewal reports its failure.
        await leases.get(subject)?.renewing?.catch(() => undefined);
        const [lease, report] = [leases.get(subject), reported];
        const [known, before] = [lease?.known, holdingOf(lease)];
        const stored = await read();
        const after = leases.get(subject);
        const isSettled = after === lease && after?.known === known && !after?.renewing && report === reported;
        if (isSettled) return { stored, ...holdingOf(after) };
        // The smaller number promises no request that the caller may not have.
        const unused = Math.min(before.unused, holdingOf(after).unused);
        if (attempt === MOST_READS) return { stored, unused, unreported: before.unreported };
      }
    },
    async close() {
      stop.abort();
      await reporting;
      await Promise.allSettled([...leases.values()].map((lease) => lease.renewing));
      await report(() => true);
    },
  };
}

/** Reports until `signal` is aborted. Once a day, it deletes the counts of addresses that were silent for months, and full token buckets. */
async function reportRegularly(
  { sql, clock, onError }: QuotaLeaseDeps,
  signal: AbortSignal,
  report: (isOver: (lease: Lease) => boolean) => Promise<void>,
): Promise<void> {
  let forgetAt = clock.now();
  while (!signal.aborted) {
    if (clock.now() >= forgetAt) {
      forgetAt = clock.now() + DAY;
      await forgetAddresses(sql, clock.now()).catch(onError);
      await forgetFullBuckets(sql, clock.now()).catch(onError);
    }
    await clock.sleep(REPORT_EVERY_MS, signal).catch(() => undefined);
    if (!signal.aborted) await report((lease) => clock.now() - lease.usedAt > IDLE_MS);
  }
}

/** The database operations of a lease: its renewal, one at a time for each lease, and its move to the next month or day. */
function createRenewal({ sql, clock, onError }: QuotaLeaseDeps) {
  const leaseMore = createBatcher(async (wishes: readonly LeaseWish[]) => {
    const now = clock.now();
    const grants = await takeLeases(sql, wishes, { now, month: monthStart(now), day: dayStart(now) });
    const bySubject = new Map(grants.map((grant) => [grant.subject, grant]));
    return wishes.map(({ subject }) => bySubject.get(subject));
  });

  const moveTo = (subject: string, lease: Lease, month: Instant, day: Instant): void => {
    const back = moveLease(lease, month, day);
    if (back !== null) returnLeases(sql, [{ subject, ...back }]).catch(onError);
  };
  const renew = async (subject: string, lease: Lease): Promise<void> => {
    const now = clock.now();
    const got = await leaseMore({ subject, wanted: nextSize(lease, now), ...lease.limits });
    // The next call inserts a new row.
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
  return { moveTo, renewOnce };
}

/** Requests in the first lease. Each further lease is twice as large if the caller needs it within `BUSY_MS`, up to `MAX_LEASE`. */
const MIN_LEASE = 4;
const MAX_LEASE = 256;
const BUSY_MS = 5_000;
/** A lease is at most one fiftieth of the requests that a caller has left, so that a crash costs little. */
const LEASE_SHARE = 50;

/** The requests that this process holds for one caller. */
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
  /** The result of the last renewal; null when there is none for this month and day. */
  known: LeaseGrant | null;
};

/**
 * Moves a lease to the windows of this month and day. Requests leased in a month that is over are void; those leased on a day that is over still
 * count in their month. Returns the requests to report and to return to the database for the old windows; null if there are none.
 */
function moveLease(lease: Lease, month: Instant, day: Instant): Omit<LeaseReturn, 'subject'> | null {
  if (month === lease.month && day === lease.day) return null;
  const before = { month: lease.month, day: lease.day };
  const isValid = month === before.month && lease.limits.perDay === null;
  const unused = isValid ? 0 : lease.unused;
  const used = lease.unreported;
  Object.assign(lease, { month, day, unused: lease.unused - unused, unreported: 0 });
  if (!isValid) lease.known = null;
  return unused + used > 0 && month === before.month ? { ...before, unused, used } : null;
}

/** Requests in the next lease. A busy caller's next lease is twice as large as the one before. */
function nextSize(lease: Lease, now: Instant): number {
  lease.size = isRecent(now, lease.renewedAt, BUSY_MS) ? Math.min(MAX_LEASE, lease.size * 2) : MIN_LEASE;
  const left = Math.min(...windowsOf(lease).map((window) => window.left));
  return Math.max(MIN_LEASE, Math.min(lease.size, Math.floor(left / LEASE_SHARE)));
}

/** Whether to renew a large lease now, before it is used up, so that no request waits. */
function isRunningLow({ unused, size }: Lease): boolean {
  return unused === Math.floor(size / 4) && size > MIN_LEASE;
}

function exhaustedWindow(lease: Lease): 'month' | 'day' {
  return windowsOf(lease).find(({ left }) => left <= 0)?.name ?? 'day';
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

/** False for every time after `now`: such a time was read before the clock was set back. */
function isRecent(now: Instant, since: Instant, ms: number): boolean {
  return now >= since && now - since < ms;
}

/** The limited windows of a caller; `left`: requests that no process has leased yet. */
function windowsOf({ limits, known, month, day }: Lease) {
  const windows = [
    { name: 'month' as const, limit: limits.perMonth, used: known?.monthSpent ?? 0, endsAt: monthReset(month) },
    { name: 'day' as const, limit: limits.perDay, used: known?.daySpent ?? 0, endsAt: dayReset(day) },
  ];
  return windows.flatMap(({ name, limit, used, endsAt }) =>
    limit === null ? [] : [{ name, limit, left: limit - used, endsAt }],
  );
}

/** The allowance of the window with fewer requests left; null without a limit. */
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
