/** How answers of the upstream change the ledger: pure functions from one state to the next. */
import type { Instant } from '../clock.ts';
import { createBackoff } from '../core/backoff.ts';
import { dayReset, dayStart, monthReset, monthStart } from '../core/calendar.ts';
import { HOUR } from '../core/interval.ts';
import type { Ledger } from '../store/quota/quota.ts';
import { HALF_LIFE_MS, SLOWEST, slowdownAt } from './adaptive-rate.ts';
import type { FailedRequest, RetryableRequest } from './quota.ts';

/** This many failures in a row are an outage; fewer may be chance. */
const OUTAGE_STREAK = 4;
const LONGEST_HOLD_MS = 5 * 60_000;
/** The longest wait that a failing server may ask for. A 429 may ask for more; the client bounds that to a day. */
export const LONGEST_OUTAGE_WAIT_MS = HOUR;
/** The upstream's caches repeat an answer for up to eleven minutes. So early in a window, an answer may still be about the window before. */
const STALE_MS = 15 * 60_000;
const LONGEST_STREAK = 30;

/**
 * One 429 among thousands of answers means that one instant had too many requests, not that the rate is twice too high. If each 429 halved the
 * rate, a rate of 50 a second would drop to 17 where the upstream rejects one request in 2,000. So only a second 429 within this time halves it.
 */
const ALONE_MS = 2 * HALF_LIFE_MS;
const A_LITTLE_SLOWER = 1.25;
const HALF_AS_FAST = 2;

/** `sentAt` is on the ledger's clock; `random` is in [0, 1). */
type WaitEvent = RetryableRequest & { readonly random: number };

/**
 * The state after a 429. Only a request that was sent after the last change of the rate, and not during the hold, changes the rate again. So a
 * burst counts once: other processes use the permits that they already have before they read of the hold.
 * Without Retry-After all processes back off. From the fourth 429 in a row on, they do so even when Retry-After asks for less.
 */
export function afterLimited(ledger: Ledger, now: Instant, event: WaitEvent): Ledger {
  const fresh = event.sentAt > ledger.limitedAt && event.sentAt >= ledger.limitedUntil;
  const backOff = fresh ? backOffMs(ledger.limitedStreak, event.random) : 0;
  const requestedMs = event.retryAfterMs;
  const wait = requestedMs === null || ledger.limitedStreak >= 3 ? Math.max(requestedMs ?? 0, backOff) : requestedMs;
  const slower = now - ledger.limitedUntil > ALONE_MS ? A_LITTLE_SLOWER : HALF_AS_FAST;
  const slowed = Math.min(SLOWEST, slower * slowdownAt(ledger.paceFactor, ledger.limitedUntil, now));
  return {
    ...ledger,
    paceFactor: fresh ? slowed : ledger.paceFactor,
    limitedAt: fresh ? now : ledger.limitedAt,
    limitedUntil: Math.max(ledger.limitedUntil, now + wait),
    limitedStreak: Math.min(LONGEST_STREAK, ledger.limitedStreak + (fresh ? 1 : 0)),
    limitedMessage: event.message,
    ...(provesUp(ledger, event.sentAt)
      ? { downStreak: 0, probe: ledger.probe === 'unavailable' ? null : ledger.probe, probeUntil: null }
      : {}),
  };
}

/**
 * The state after the upstream reported that a window is used up. No process sends a request until `graceMs` after its end; then one request
 * goes alone, as a probe.
 */
export function afterExhausted(
  ledger: Ledger,
  event: FailedRequest & { window: 'month' | 'day'; graceMs: number },
): Ledger {
  const start = event.window === 'month' ? monthStart(event.sentAt) : dayStart(event.sentAt);
  const reset = event.window === 'month' ? monthReset(event.sentAt) : dayReset(event.sentAt);
  const stale = event.sentAt < start + STALE_MS;
  return {
    ...ledger,
    exhaustedUntil: Math.max(ledger.exhaustedUntil, (stale ? start + STALE_MS : reset) + event.graceMs),
    exhaustedMessage: event.message,
    downStreak: provesUp(ledger, event.sentAt) ? 0 : ledger.downStreak,
    probe: 'exhausted',
    probeUntil: null,
  };
}

/** The state after no answer, or an unusable one. `OUTAGE_STREAK` in a row are an outage: then all processes wait, longer each time. */
export function afterUnavailable(ledger: Ledger, now: Instant, event: WaitEvent): Ledger {
  // In an outage, a request proves nothing new if it was in flight, or had its permit, before the outage was noticed.
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

/**
 * Whether an answer to a request sent at `sentAt` proves that the upstream is up. In an outage, only one sent after it was noticed does: a server
 * that shuts down still answers the requests that it has begun.
 */
function provesUp(ledger: Ledger, sentAt: Instant): boolean {
  return !isOutage(ledger) || sentAt > ledger.downAt;
}

/** The state after a usable answer: the upstream is up. Only the answer to a request sent after a hold began ends that hold. */
export function afterAnswered(ledger: Ledger, now: Instant, { sentAt }: { sentAt: Instant }): Ledger {
  const limitedStreak = sentAt > ledger.limitedAt ? 0 : ledger.limitedStreak;
  if (!provesUp(ledger, sentAt)) return { ...ledger, limitedStreak };
  return {
    ...ledger,
    downStreak: 0,
    downUntil: sentAt > ledger.downAt ? Math.min(ledger.downUntil, now) : ledger.downUntil,
    limitedStreak,
    // `/users/me` may be requested while the month is used up. Such a request is not the probe that waits for the reset.
    probe: ledger.probe === 'exhausted' && ledger.exhaustedUntil > now ? ledger.probe : null,
    probeUntil: null,
  };
}

/** The state after an answer of `/users/me`: the upstream's count wins when it is higher than ours, and its limit replaces ours. */
export function afterReconciled(ledger: Ledger, now: Instant, usage: { made: number; left: number | null }): Ledger {
  const month = monthStart(now);
  const ours = ledger.monthStart >= month ? ledger.monthSpent : 0;
  // Just after a month began, the upstream's count may still be that of the old month.
  const theirs = now - month < STALE_MS || ledger.monthStart > month ? 0 : usage.made;
  const more = usage.left === null || usage.left > 0;
  return {
    ...ledger,
    monthStart: Math.max(ledger.monthStart, month),
    monthSpent: Math.max(ours, theirs),
    monthLimit: usage.left === null ? null : usage.made + usage.left,
    monthLimitKnown: true,
    // Requests are left: the plan was changed, or the 402 had another reason.
    exhaustedUntil: more ? Math.min(ledger.exhaustedUntil, now) : ledger.exhaustedUntil,
    probe: more && ledger.probe === 'exhausted' ? (isOutage(ledger) ? 'unavailable' : null) : ledger.probe,
    probeUntil: more && ledger.probe === 'exhausted' ? null : ledger.probeUntil,
  };
}

const backoff = createBackoff({ firstMs: 1_000, mostMs: LONGEST_HOLD_MS });

/**
 * Milliseconds to wait after `before` (0, 1, 2 …) earlier failures in a row: at least half of the bound, because the upstream would refuse the next
 * request after a wait near zero, too.
 */
function backOffMs(before: number, random: number): number {
  return backoff(before, 1 - random / 2);
}
