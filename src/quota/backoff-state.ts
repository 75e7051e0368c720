/** What follows from the upstream's answers: pure functions from one state of the ledger to the next. */
import type { Instant } from '../clock.ts';
import { createBackoff } from '../core/backoff.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../core/calendar.ts';
import { HOUR } from '../core/interval.ts';
import type { Ledger } from '../store/quota/quota.ts';
import { HALF_LIFE_MS, SLOWEST, slowdownAt } from './adaptive-rate.ts';
import type { FailedRequest, RetryableRequest } from './quota.ts';

/** This many failures in a row are an outage; fewer are chance. */
const OUTAGE_STREAK = 4;
const LONGEST_HOLD_MS = 5 * 60_000;
/** The longest wait that a failing server may ask for. A 429 may ask for more; the client bounds that to a day. */
export const LONGEST_OUTAGE_WAIT_MS = HOUR;
/** Upstream's caches repeat an answer for up to eleven minutes: early in a window, an answer may still be about the one before. */
const STALE_MS = 15 * 60_000;
const LONGEST_STREAK = 30;

/**
 * One 429 among thousands of answers means that one instant was too full, not that the rate is twice too high. If each 429 halved the
 * rate, a rate of 50 a second would drop to 17 where one request in 2,000 is rejected. Two 429s within this time mean more.
 */
const ALONE_MS = 2 * HALF_LIFE_MS;
const A_LITTLE_SLOWER = 1.25;
const HALF_AS_FAST = 2;

/** `sentAt` on the same clock as the ledger's; `random` in [0, 1). */
type WaitEvent = RetryableRequest & { readonly random: number };

/**
 * A 429. Only a request that was sent after the last change of the rate, and not during the hold, changes it again, so that a burst counts
 * once: before other processes hear of the hold, they send what they already have a permit for.
 * Without Retry-After everybody backs off; from the fourth 429 in a row on, also when Retry-After asks for less.
 */
export function afterLimited(ledger: Ledger, now: Instant, event: WaitEvent): Ledger {
  const fresh = event.sentAt > ledger.limitedAt && event.sentAt >= ledger.limitedUntil;
  const backOff = fresh ? backOffMs(ledger.limitedStreak, event.random) : 0;
  const asked = event.retryAfterMs;
  const wait = asked === null || ledger.limitedStreak >= 3 ? Math.max(asked ?? 0, backOff) : asked;
  const slower = now - ledger.limitedUntil > ALONE_MS ? A_LITTLE_SLOWER : HALF_AS_FAST;
  const slowed = Math.min(SLOWEST, slower * slowdownAt(ledger.paceFactor, ledger.limitedUntil, now));
  return {
    ...ledger,
    paceFactor: fresh ? slowed : ledger.paceFactor,
    limitedAt: fresh ? now : ledger.limitedAt,
    limitedUntil: Math.max(ledger.limitedUntil, now + wait),
    limitedStreak: Math.min(LONGEST_STREAK, ledger.limitedStreak + (fresh ? 1 : 0)),
    limitedMessage: event.message,
    // Upstream answers, so it is up.
    downStreak: 0,
    probe: ledger.probe === 'unavailable' ? null : ledger.probe,
    probeUntil: null,
  };
}

/** Upstream says that a window is used up: nobody asks until it ends (`graceMs` later); then one request goes alone, as a probe. */
export function afterExhausted(
  ledger: Ledger,
  _now: Instant,
  event: FailedRequest & { window: 'month' | 'day'; graceMs: number },
): Ledger {
  const start = event.window === 'month' ? monthStart(event.sentAt) : dayStart(event.sentAt);
  const reset = event.window === 'month' ? monthReset(event.sentAt) : dayReset(event.sentAt);
  const stale = event.sentAt < start + STALE_MS;
  return {
    ...ledger,
    exhaustedUntil: Math.max(ledger.exhaustedUntil, (stale ? start + STALE_MS : reset) + event.graceMs),
    exhaustedMessage: event.message,
    downStreak: 0,
    probe: 'exhausted',
    probeUntil: null,
  };
}

/** No answer, or none that can be used. A few in a row are an outage: then everybody waits, longer each time. */
export function afterUnavailable(ledger: Ledger, now: Instant, event: WaitEvent): Ledger {
  // In an outage, requests that were in flight when it was noticed say nothing new, nor do those whose permits had been granted before.
  const counts = ledger.downStreak < OUTAGE_STREAK || event.sentAt >= ledger.downUntil;
  const streak = Math.min(LONGEST_STREAK, ledger.downStreak + (counts ? 1 : 0));
  const outage = isOutage({ downStreak: streak });
  const backOff = counts && outage ? backOffMs(streak - OUTAGE_STREAK, event.random) : 0;
  const wait = Math.max(Math.min(event.retryAfterMs ?? 0, LONGEST_OUTAGE_WAIT_MS), backOff);
  return {
    ...ledger,
    downStreak: streak,
    downAt: counts ? now : ledger.downAt,
    downUntil: Math.max(ledger.downUntil, wait > 0 ? now + wait : 0),
    downMessage: event.message,
    probe: outage ? 'unavailable' : ledger.probe,
    probeUntil: counts ? null : ledger.probeUntil,
  };
}

export function isOutage({ downStreak }: Pick<Ledger, 'downStreak'>): boolean {
  return downStreak >= OUTAGE_STREAK;
}

/** An answer that can be used: upstream is up. Only the answer to a request sent after a hold began ends that hold. */
export function afterAnswered(ledger: Ledger, now: Instant, { sentAt }: { sentAt: Instant }): Ledger {
  return {
    ...ledger,
    downStreak: 0,
    downUntil: sentAt > ledger.downAt ? Math.min(ledger.downUntil, now) : ledger.downUntil,
    limitedStreak: sentAt > ledger.limitedAt ? 0 : ledger.limitedStreak,
    // `/users/me` may be asked while the month is used up: its answer is not the probe that waits for the reset.
    probe: ledger.probe === 'exhausted' && ledger.exhaustedUntil > now ? ledger.probe : null,
    probeUntil: null,
  };
}

/** What `/users/me` says: upstream's count wins when it is higher, and its limit replaces ours. */
export function afterReconciled(ledger: Ledger, now: Instant, usage: { made: number; left: number | null }): Ledger {
  const month = monthStart(now);
  const ours = ledger.monthStart >= month ? ledger.monthSpent : 0;
  // Just after a month began, their count may still be the old month's.
  const theirs = now - month < STALE_MS || ledger.monthStart > month ? 0 : usage.made;
  const more = usage.left === null || usage.left > 0;
  return {
    ...ledger,
    monthStart: Math.max(ledger.monthStart, month),
    monthSpent: Math.max(ours, theirs),
    monthLimit: usage.left === null ? null : usage.made + usage.left,
    monthLimitKnown: true,
    // There is budget after all: the plan was changed, or the 402 meant something else.
    exhaustedUntil: more ? Math.min(ledger.exhaustedUntil, now) : ledger.exhaustedUntil,
    probe: more && ledger.probe === 'exhausted' ? null : ledger.probe,
    probeUntil: more && ledger.probe === 'exhausted' ? null : ledger.probeUntil,
  };
}

const backoff = createBackoff({ firstMs: 1_000, mostMs: LONGEST_HOLD_MS });

/** After 0, 1, 2 … in a row; at least half of the bound, because the next request after a wait near zero would be refused as well. */
function backOffMs(before: number, random: number): number {
  return backoff(before, 1 - random / 2);
}
