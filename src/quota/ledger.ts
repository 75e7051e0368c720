/** The quota of an account over its row in Postgres, which all processes share. */
import type { Clock, Instant } from '../clock.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../core/calendar.ts';
import type { Sql } from '../store/connection/connect.ts';
import { type Ledger, readLedger, readSpenders } from '../store/quota/quota.ts';
import { slowdownAt } from './adaptive-rate.ts';
import { isOutage } from './backoff-state.ts';
import { createLedgerClock } from './clock-offset.ts';
import { createGate } from './gate.ts';
import type { LedgerReads, Limits, Quota, QuotaState, Reserved } from './quota.ts';
import { createTake } from './take.ts';
import { createUpstreamReports } from './upstream-reports.ts';

/** How far clocks may disagree, a request may be late, and a process may oversleep. */
export const GRACE_MS = 2000;
const RUN_AHEAD_MS = 2000;
const PROBE_MS = 60_000;

export type QuotaOptions = {
  readonly sql: Sql;
  /** For statements that only read: on another connection they do not wait behind a take that waits for a lock. Default: `sql`. */
  readonly reads?: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly limits: Limits;
  /** The operator set `limits.perMonth`: upstream's own figure may lower it but not raise it. */
  readonly perMonthFixed?: boolean;
  /** The reservation at this instant. `ledger` reads over the connection of the takes, so that it waits for nothing that they do not wait for. */
  readonly reserved: (ledger: LedgerReads) => Reserved | Promise<Reserved>;
  /** True: all hosts go by the database's clock. False: by `clock`, which all callers must then share. */
  readonly useDatabaseClock: boolean;
  /** In [0, 1): spreads backoffs. */
  readonly random: () => number;
  /** No grant lies further ahead than this (for backfills, than half of it). A call that would wait longer is denied with 'queue'. */
  readonly runAheadMs?: number;
  /** Nothing is sent closer than this to the border of a limited window. */
  readonly graceMs?: number;
  /** How late a permit may be used, unless the gap to the next one is longer. */
  readonly lateMs?: number;
  /** After an outage, or an exhausted window, one request goes alone; so long the others wait for its answer. */
  readonly probeMs?: number;
};

/**
 * Every request is counted when it is granted, and never given back. Database errors reject.
 * `sendAt` and `until` are instants of `clock`, whichever clock the ledger goes by.
 */
export function createQuota(options: QuotaOptions): Quota {
  const { sql, clock, accountId, limits, perMonthFixed = false, random, reserved, lateMs } = options;
  const { reads = sql, runAheadMs = RUN_AHEAD_MS, graceMs = GRACE_MS, probeMs = PROBE_MS } = options;
  const gate = createGate(limits.perSecond);
  const ledgerClock = createLedgerClock(sql, clock, options.useDatabaseClock);
  const ledger = { sql, clock, ledgerClock, accountId };
  const { noteBackoff, ...reports } = createUpstreamReports({ ...ledger, gate, graceMs, random });
  const terms = { accountId, limits, perMonthFixed };
  const waits = { runAheadMs, graceMs, probeMs, lateMs };
  const readsOver = (connection: Sql): LedgerReads => ({
    async state() {
      const askedAt = clock.now();
      const { ledger, now } = await readLedger(connection, { accountId, now: ledgerClock.now() });
      return stateOf(terms, ledger, now, ledgerClock.shiftMs(askedAt, now));
    },
    spenders: () => readSpenders(connection, { accountId, now: ledgerClock.now() }),
  });
  const ofTakes = readsOver(sql);
  return {
    gate,
    take: createTake({ ...ledger, ...terms, ...waits, reserved: () => reserved(ofTakes), onBackoff: noteBackoff }),
    ...reports,
    ...readsOver(reads),
  };
}

type Terms = { readonly accountId: string; readonly limits: Limits; readonly perMonthFixed: boolean };

/** The state that a row of the ledger means at `now` (of its own clock). `shiftMs` brings its instants to the caller's clock. */
function stateOf(
  { accountId, limits, perMonthFixed }: Terms,
  ledger: Ledger,
  now: Instant,
  shiftMs: number,
): QuotaState {
  const here = (instant: Instant) => Math.ceil(instant + shiftMs);
  const month = Math.max(ledger.monthStart, monthStart(now));
  const day = Math.max(ledger.dayStart, dayStart(now));
  const factor = slowdownAt(ledger.paceFactor, ledger.limitedUntil, now);
  return {
    accountId,
    now: here(now),
    month: {
      start: month,
      reset: monthReset(month),
      spent: ledger.monthStart === month ? ledger.monthSpent : 0,
      limit: monthLimit(limits.perMonth, perMonthFixed, ledger),
    },
    day: {
      start: day,
      reset: dayReset(day),
      spent: ledger.dayStart === day ? ledger.daySpent : 0,
      limit: limits.perDay,
    },
    rate: {
      limit: limits.perSecond,
      now: limits.perSecond === null ? null : limits.perSecond / factor,
      nextFree: here(Math.max(now, ledger.nextFree)),
    },
    hold: holdOf(ledger, now, here),
    outage: isOutage(ledger) ? { message: ledger.downMessage } : null,
  };
}

/** The same rule as in `takeRequests`. */
function monthLimit(perMonth: number | null, fixed: boolean, ledger: Ledger): number | null {
  if (!ledger.monthLimitKnown) return perMonth;
  if (!fixed || perMonth === null) return ledger.monthLimit;
  return ledger.monthLimit === null ? perMonth : Math.min(perMonth, ledger.monthLimit);
}

/** The longest of all holds. */
function holdOf(ledger: Ledger, now: Instant, here: (instant: Instant) => Instant): QuotaState['hold'] {
  const probing = ledger.probeUntil ?? 0;
  const holds: NonNullable<QuotaState['hold']>[] = [
    { until: ledger.exhaustedUntil, reason: 'quota exhausted', message: ledger.exhaustedMessage },
    { until: ledger.downUntil, reason: 'unavailable', message: ledger.downMessage },
    { until: ledger.limitedUntil, reason: 'limited', message: ledger.limitedMessage },
    ledger.probe === 'exhausted'
      ? { until: probing, reason: 'quota exhausted', message: ledger.exhaustedMessage }
      : { until: probing, reason: 'unavailable', message: ledger.downMessage },
  ];
  const longest = holds.reduce((a, b) => (b.until > a.until ? b : a));
  return longest.until > now ? { ...longest, until: here(longest.until) } : null;
}
