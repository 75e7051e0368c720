/** The ledger's rules as plain arithmetic on one object. The SQL of `takeRequests` must agree with it to the millisecond. */
import type { Instant } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import type { Limits, Reserved, Spender, Take } from '../../src/quota/quota.ts';
import type { Ledger } from '../../src/store/quota/quota.ts';

export const EMPTY: Ledger = {
  nextFree: 0,
  dayStart: 0,
  daySpent: 0,
  monthStart: 0,
  monthSpent: 0,
  monthLimit: null,
  monthLimitKnown: false,
  paceFactor: 1,
  limitedAt: 0,
  limitedUntil: 0,
  limitedStreak: 0,
  limitedMessage: '',
  exhaustedUntil: 0,
  exhaustedMessage: '',
  downAt: 0,
  downUntil: 0,
  downStreak: 0,
  downMessage: '',
  probe: null,
  probeUntil: null,
};

export type Terms = { readonly limits: Limits; readonly perMonthFixed: boolean; readonly aside: Reserved };

const GRACE = 2000;
const RUN_AHEAD = 2000;
const PROBE = 60_000;
const PROBE_AGAIN = 1_000;

const startOfDay = (at: Instant) => at - (at % DAY);
const startOfMonth = (at: Instant) => Date.parse(`${new Date(at).toISOString().slice(0, 7)}-01`);
const endOfMonth = (at: Instant) => startOfMonth(startOfMonth(at) + 32 * DAY);

/** What was granted in the month of the latest grant. The account may have spent more than that. */
export type Own = { readonly month: Instant; readonly spent: number };

/** The result of the take, and the ledger after it. */
export function takeFrom(
  ledger: Ledger,
  now: Instant,
  terms: Terms,
  spender: Spender,
  own: Own,
): { take: Take; ledger: Ledger; own: Own } {
  const { limits, perMonthFixed, aside } = terms;
  const fullGap = limits.perSecond === null ? 0 : 1010 / limits.perSecond;
  const minutes = Math.min(60, Math.max(0, (now - ledger.limitedUntil) / 60_000));
  const gap = fullGap * (1 + (ledger.paceFactor - 1) * 0.5 ** minutes);
  const perMonth = !ledger.monthLimitKnown
    ? limits.perMonth
    : perMonthFixed && limits.perMonth !== null
      ? Math.min(limits.perMonth, ledger.monthLimit ?? Number.POSITIVE_INFINITY)
      : ledger.monthLimit;

  const runAhead = spender.class === 'backfill' ? RUN_AHEAD / 2 : RUN_AHEAD;
  const wasSetBack = ledger.nextFree > now + runAhead + 2 * GRACE + 32 * fullGap;
  let sendAt = wasSetBack ? now + runAhead : Math.max(now, ledger.nextFree);
  const earliest = sendAt;
  for (const border of [
    ...(limits.perDay === null ? [] : [startOfDay(earliest + GRACE)]),
    ...(perMonth === null ? [] : [startOfMonth(earliest + GRACE)]),
  ]) {
    if (Math.abs(earliest - border) <= GRACE) sendAt = Math.max(sendAt, border + GRACE);
  }

  const day = Math.max(ledger.dayStart, startOfDay(sendAt));
  const month = Math.max(ledger.monthStart, startOfMonth(sendAt));
  const dayUsed = day === ledger.dayStart ? ledger.daySpent : 0;
  const monthUsed = month === ledger.monthStart ? ledger.monthSpent : 0;
  const dayReset = day + DAY + GRACE;
  const monthReset = endOfMonth(month) + GRACE;
  const leave = spender.isAccountRequest
    ? { day: 0, month: 0 }
    : spender.class === 'backfill'
      ? aside
      : (aside.account ?? { day: 0, month: 0 });

  const deny = (reason: Extract<Take, { kind: 'denied' }>['reason'], until: Instant) => ({
    take: { kind: 'denied', reason, until: Math.ceil(until - 1e-3) } as const,
    ledger,
    own,
  });
  const ownUsed = own.month === month ? own.spent : 0;
  const isReported =
    spender.isAccountRequest === true &&
    ledger.monthLimitKnown &&
    (!perMonthFixed || limits.perMonth === null || monthUsed < limits.perMonth) &&
    ownUsed < (perMonth ?? 0);
  if (perMonth !== null && monthUsed >= perMonth && !isReported) return deny('month', monthReset);
  if (limits.perDay !== null && dayUsed >= limits.perDay) return deny('day', dayReset);
  const probing = ledger.probeUntil ?? 0;
  const askAgain = Math.min(probing, now + PROBE_AGAIN);
  if (ledger.exhaustedUntil > now && !spender.isAccountRequest)
    return deny('quota exhausted', Math.max(ledger.exhaustedUntil, askAgain));
  if (probing > now) {
    if (ledger.probe === 'exhausted') return deny('quota exhausted', Math.max(ledger.exhaustedUntil, askAgain));
    return deny('unavailable', Math.max(ledger.downUntil, askAgain));
  }
  if (ledger.downUntil > now) return deny('unavailable', Math.max(ledger.downUntil, askAgain));
  if (ledger.limitedUntil > now) return deny('limited', ledger.limitedUntil);
  if (perMonth !== null && monthUsed + leave.month >= perMonth && !isReported) return deny('reserved', monthReset);
  if (limits.perDay !== null && dayUsed + leave.day >= limits.perDay) return deny('reserved', dayReset);
  if (sendAt > now + runAhead) return deny('queue', sendAt - runAhead);
  const isProbe = ledger.probe !== null && !spender.isOtherHost;
  const isFree = gap === 0 || isProbe;
  const goodUntil = sendAt + (isFree ? GRACE : Math.min(GRACE, Math.max(100, gap)));
  return {
    take: { kind: 'granted', sendAt: Math.ceil(sendAt - 1e-3), goodUntil },
    ledger: {
      ...ledger,
      nextFree: sendAt + gap,
      dayStart: day,
      daySpent: dayUsed + 1,
      monthStart: month,
      monthSpent: monthUsed + 1,
      probeUntil: isProbe ? sendAt + PROBE : ledger.probeUntil,
    },
    own: { month, spent: ownUsed + 1 },
  };
}
