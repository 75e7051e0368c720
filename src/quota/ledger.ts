/** The budget over its row in Postgres: asks for requests, and turns what upstream said into what everybody waits for. */
import type { Clock, Instant } from '../clock.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../core/calendar.ts';
import type { Sql } from '../store/connection/connect.ts';
import {
  changeLedger,
  type Ledger,
  openLedger,
  readDatabaseClock,
  readLedger,
  readSpenders,
} from '../store/quota/quota.ts';
import { takeRequests } from '../store/quota/quota-take.ts';
import { gapMs, paceFactorAt } from './adaptive-rate.ts';
import {
  afterAnswered,
  afterLimited,
  afterReconciled,
  afterSpent,
  afterUnavailable,
  LONGEST_OUTAGE_WAIT_MS,
} from './backoff-state.ts';
import { createClockOffset } from './clock-offset.ts';
import { createGate, goodForMs } from './gate.ts';
import type { Limits, Quota, QuotaState, SetAside, Spender, Stretch, Take, Unwanted } from './quota.ts';
import { createTakers } from './take-batcher.ts';

/** How far clocks may disagree, a request may be late, and a process may oversleep. */
export const GRACE_MS = 2000;
const RUN_AHEAD_MS = 2000;
const PROBE_MS = 60_000;
/** The shortest back-off there is: what this process waits by itself until the ledger says how long. */
const SHORTEST_BACK_OFF_MS = 500;
const LONGEST_MESSAGE = 300;
const TUNING = 5;

export type QuotaOptions = {
  readonly sql: Sql;
  /** For what only looks, and locks nothing: on a connection of its own it does not wait behind a take that waits for others. Default: `sql`. */
  readonly reads?: Sql;
  readonly clock: Clock;
  readonly accountId: string;
  readonly limits: Limits;
  /** `limits.perMonth` was set by the operator: upstream's own figure may lower it but not raise it. */
  readonly perMonthFixed?: boolean;
  /** What the schedules still need at this instant. */
  readonly setAside: () => SetAside | Promise<SetAside>;
  /** True: all hosts go by the database's clock. False: by `clock`, which all takers must then share. */
  readonly useDatabaseClock: boolean;
  /** In [0, 1): spreads back-offs. */
  readonly random: () => number;
  /** No grant lies further ahead than this, for backfill than half of it; who would have to wait longer is told 'queue'. */
  readonly runAheadMs?: number;
  /** Nothing is sent closer than this to the border of a limited window. */
  readonly graceMs?: number;
  /** How late a turn may be used, unless the gap to the next one is longer. */
  readonly lateMs?: number;
  /** After an outage, or a spent window, one request goes alone; this long the others wait for what comes of it. */
  readonly probeMs?: number;
};

/**
 * Every request is counted when it is granted, and never given back. Database errors reject.
 * `sendAt` and `until` are told on `clock`, whichever clock the ledger goes by.
 */
export function createQuota(options: QuotaOptions): Quota {
  const { sql, clock, accountId, limits, perMonthFixed = false, setAside, useDatabaseClock, random } = options;
  const { reads = sql, runAheadMs = RUN_AHEAD_MS, graceMs = GRACE_MS, probeMs = PROBE_MS, lateMs } = options;
  const gate = createGate(limits.perSecond);
  // What this process knows without asking: whether there is a streak to end, and that upstream answered since.
  let troubled = false;
  let lastAnswered = Number.NEGATIVE_INFINITY;
  const offset = createClockOffset();
  let tuned: Promise<void> | null = null;

  /** Asks the time until it was answered without delay once: a first grant told too late would crowd those after it. */
  async function tune(): Promise<void> {
    for (let i = 0; i < TUNING; i++) {
      const askedAt = clock.now();
      const there = await readDatabaseClock(sql);
      offset.observe(askedAt, clock.now(), there);
    }
  }

  const at = () => ({ accountId, now: useDatabaseClock ? null : clock.now() });

  /** Takes up to one request for each in one round trip: at least one of those who still want one is granted it, or all are denied. */
  async function takeForAll(
    stretches: readonly (Stretch | undefined)[],
    spender: Spender,
  ): Promise<readonly (Take | Unwanted | null)[]> {
    const asked = stretches.filter((stretch) => stretch !== undefined);
    const aside = await setAside();
    const leave = spender.class === 'backfill' ? aside : (aside.account ?? { day: 0, month: 0 });
    const args = {
      ...at(),
      wanted: stretches.length - asked.length,
      ifOpen: asked.length === 0 ? null : { asked, now: clock.now(), plan: asked[0]!.plan },
      perMonth: limits.perMonth,
      perMonthFixed,
      perDay: limits.perDay,
      gapMs: gapMs(limits.perSecond),
      // Backfill looks half as far ahead: however many of it wait, a scheduled request finds its place behind the last grant.
      runAheadMs: spender.class === 'backfill' ? runAheadMs / 2 : runAheadMs,
      graceMs,
      probeMs,
      leaveMonth: spender.asksAccount ? 0 : leave.month,
      leaveDay: spender.asksAccount ? 0 : leave.day,
      asksAccount: spender.asksAccount ?? false,
      spenderClass: spender.class,
      spenderName: spender.name,
    };
    if (useDatabaseClock) {
      tuned ??= tune();
      await tuned.catch((error) => {
        tuned = null;
        throw error;
      });
    }
    let askedAt = clock.now();
    let row = await takeRequests(sql, args);
    while (row === null) {
      await openLedger(sql, accountId);
      askedAt = clock.now();
      row = await takeRequests(sql, args);
    }
    if (row.troubled) troubled = true;
    const { denied, granted } = row;
    // When the first may be sent, or is worth asking again, on our clock.
    const first = row.at + (useDatabaseClock ? offset.observe(askedAt, clock.now(), row.now) : 0);
    // A probe goes alone: nobody is in its way when it is late, and everybody waits for it.
    const goodFor = row.isProbe ? graceMs : goodForMs(row.gapMs, graceMs, lateMs);
    const gaps = row.gaps.values();
    let left = granted;
    return stretches.map((stretch) => {
      const open = stretch === undefined ? undefined : gaps.next().value!;
      if (open?.length === 0) return { kind: 'unwanted' };
      // Never before: rounded up to the clock's millisecond.
      if (denied !== null) return { kind: 'denied', reason: denied, until: Math.ceil(first) };
      if (left === 0) return null;
      const sendAt = Math.ceil(first + (granted - left--) * row.gapMs);
      return { kind: 'granted', sendAt, goodUntil: sendAt + goodFor, ...(open ? { gaps: open } : {}) };
    });
  }

  /** `sentAt` of our clock, on the ledger's. */
  async function change(
    sentAt: Instant,
    step: (ledger: Ledger, now: Instant, sentAt: Instant) => Ledger,
  ): Promise<Ledger> {
    const agoMs = clock.now() - sentAt;
    const ledger = await changeLedger(sql, at(), (old, now) => step(old, now, now - agoMs));
    troubled = ledger.downStreak > 0 || ledger.limitedStreak > 0 || ledger.probe !== null;
    return ledger;
  }

  return {
    gate,
    take: createTakers(takeForAll) as Quota['take'],
    pause({ reason, retryAfterMs }) {
      const wait = retryAfterMs ?? (reason === 'limited' ? SHORTEST_BACK_OFF_MS : 0);
      const bound = reason === 'limited' ? wait : Math.min(wait, LONGEST_OUTAGE_WAIT_MS);
      if (bound > 0) gate.hold(clock.now(), { reason, until: clock.now() + bound });
    },
    async limited({ sentAt, retryAfterMs, message }) {
      const event = { retryAfterMs, message: message.slice(0, LONGEST_MESSAGE), random: random() };
      let waitMs = 0;
      await change(sentAt, (ledger, now, sent) => {
        const next = afterLimited(ledger, now, { ...event, sentAt: sent });
        waitMs = next.limitedUntil - now;
        return next;
      });
      if (waitMs > 0) gate.hold(clock.now(), { reason: 'limited', until: clock.now() + waitMs });
    },
    async spent({ sentAt, window, message }) {
      const event = { window, graceMs, message: message.slice(0, LONGEST_MESSAGE) };
      await change(sentAt, (ledger, now, sent) => afterSpent(ledger, now, { ...event, sentAt: sent }));
    },
    async unavailable({ sentAt, retryAfterMs, message }) {
      // Upstream has answered what was asked after this: it is not down.
      if (sentAt < lastAnswered && retryAfterMs === null) return;
      const event = { retryAfterMs, message: message.slice(0, LONGEST_MESSAGE), random: random() };
      await change(sentAt, (ledger, now, sent) => afterUnavailable(ledger, now, { ...event, sentAt: sent }));
    },
    async answered({ sentAt }) {
      lastAnswered = Math.max(lastAnswered, sentAt);
      gate.answered(sentAt);
      if (!troubled) return;
      troubled = false;
      await change(sentAt, (ledger, now, sent) => afterAnswered(ledger, now, { sentAt: sent }));
    },
    async reconcile(usage) {
      await changeLedger(sql, at(), (ledger, now) => afterReconciled(ledger, now, usage));
    },
    async state() {
      const askedAt = clock.now();
      const { ledger, now } = await readLedger(reads, at());
      const shiftMs = useDatabaseClock ? offset.observe(askedAt, clock.now(), now) : 0;
      return stateOf({ accountId, limits, perMonthFixed }, ledger, now, shiftMs);
    },
    spenders: () => readSpenders(reads, at()),
  };
}

type Terms = { readonly accountId: string; readonly limits: Limits; readonly perMonthFixed: boolean };

/** What the ledger amounts to at `now` (its own clock); `shiftMs` brings its instants to the caller's. */
function stateOf(
  { accountId, limits, perMonthFixed }: Terms,
  ledger: Ledger,
  now: Instant,
  shiftMs: number,
): QuotaState {
  const here = (instant: Instant) => Math.ceil(instant + shiftMs);
  const month = Math.max(ledger.monthStart, monthStart(now));
  const day = Math.max(ledger.dayStart, dayStart(now));
  const factor = paceFactorAt(ledger.paceFactor, ledger.limitedUntil, now);
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
    pace: {
      limit: limits.perSecond,
      now: limits.perSecond === null ? null : limits.perSecond / factor,
      nextFree: here(Math.max(now, ledger.nextFree)),
    },
    hold: holdOf(ledger, now, here),
  };
}

/** The same rule as in `takeRequests`. */
function monthLimit(perMonth: number | null, fixed: boolean, ledger: Ledger): number | null {
  if (!ledger.monthLimitKnown) return perMonth;
  if (!fixed || perMonth === null) return ledger.monthLimit;
  return ledger.monthLimit === null ? perMonth : Math.min(perMonth, ledger.monthLimit);
}

/** Of all that is waited for, what lasts longest. */
function holdOf(ledger: Ledger, now: Instant, here: (instant: Instant) => Instant): QuotaState['hold'] {
  const probing = ledger.probeUntil ?? 0;
  const holds: NonNullable<QuotaState['hold']>[] = [
    { until: ledger.spentUntil, reason: 'quota exhausted', message: ledger.spentMessage },
    { until: ledger.downUntil, reason: 'unavailable', message: ledger.downMessage },
    { until: ledger.limitedUntil, reason: 'limited', message: ledger.limitedMessage },
    ledger.probe === 'spent'
      ? { until: probing, reason: 'quota exhausted', message: ledger.spentMessage }
      : { until: probing, reason: 'unavailable', message: ledger.downMessage },
  ];
  const longest = holds.reduce((a, b) => (b.until > a.until ? b : a));
  return longest.until > now ? { ...longest, until: here(longest.until) } : null;
}
