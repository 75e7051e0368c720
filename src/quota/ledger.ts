/** The quota of an account. Its state is one row of Postgres, which all processes share. */
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
  /** For statements that only read; another connection, so that they do not wait behind a take that waits for a lock. Default: `sql`. */
  readonly reads?: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly limits: Limits;
  /** True when the operator set `limits.perMonth`: the upstream's limit may lower it but not raise it. */
  readonly perMonthFixed?: boolean;
  /** The current reservation. `ledger` reads over the connection of the takes, so it waits only for what they wait for, too. */
  readonly reserved: (ledger: LedgerReads) => Reserved | Promise<Reserved>;
  /** True: all hosts use the database's clock. False: they use `clock`, which all callers must then share. */
  readonly useDatabaseClock: boolean;
  /** In [0, 1): spreads backoffs. */
  readonly random: () => number;
  /** No grant lies further ahead than this (for backfills, half of it). A call that would wait longer is denied with 'queue'. */
  readonly runAheadMs?: number;
  /** No request is sent closer than this to the border of a limited window. */
  readonly graceMs?: number;
  /** How late a permit may be used, unless the gap to the next one is longer. */
  readonly lateMs?: number;
  /** After an outage or an exhausted window, one request goes alone. The others wait for its answer, at most this long. */
  readonly probeMs?: number;
};

/**
 * The ledger counts every request when it grants it, and never takes it back. Database errors reject.
 * `sendAt` and `until` are instants of `clock`, even if the ledger uses the database's clock.
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
      const sentAt = clock.now();
      const { ledger, now } = await readLedger(connection, { accountId, now: ledgerClock.now() });
      return stateOf(terms, ledger, now, ledgerClock.shiftMs(sentAt, now));
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

/** The state of the quota at `now` of the ledger's clock, from its row. `shiftMs` converts its instants to the caller's clock. */
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
