/**
 * The state that one process has without reading the ledger: when it sent its last requests, and until when the upstream told it to wait.
 * The process checks it right before it sends a request.
 *
 * The ledger spaces the permits. A process uses a permit at its instant or soon after (`permitLifetimeMs`), and never sends more than the
 * limit in any second (`opensAt`), even after a stall. So a single process keeps the limit exactly. With several processes, the
 * permits used within one second are those of that second and of `permitLifetimeMs` before it: at most the limit and `permitLifetimeMs / gap` more,
 * rounded up. That is one request more (above ten a second, a tenth more), and only when one process stalls and the others do not.
 * The gate does not know the network, which may delay a request after it was sent.
 */
import type { Instant } from '../clock.ts';

export type Gate = {
  /** When the next request may be sent without exceeding the limit. */
  opensAt(now: Instant): Instant;
  /** Records that a request is sent. */
  pass(now: Instant): void;
  /** The pause that the upstream asked for; null when there is none. */
  heldAt(now: Instant): Hold | null;
  hold(now: Instant, hold: Hold): void;
  /** Records that the upstream answered the request sent at this instant. */
  answered(sentAt: Instant): void;
};

type Hold = { readonly until: Instant; readonly reason: 'limited' | 'unavailable' };

/** A permit that is used later than this, or than one gap if that is longer, could exceed the limit together with those of other processes. */
const LATE_MS = 100;
/** A fifth of the margin by which the rate stays below the limit (`MARGIN`). The rest is for requests that are sent late. */
const SPARE = 1.002;

/** Milliseconds after its instant during which a permit may be used. `gapMs` is the time from one permit to the next. */
export function permitLifetimeMs(gapMs: number, graceMs: number, lateMs = LATE_MS): number {
  return gapMs === 0 ? graceMs : Math.min(graceMs, Math.max(gapMs, lateMs));
}

export function createGate(perSecond: number | null): Gate {
  // At most `most` requests within `withinMs`: the limit within a second, or below one a second, one request within its gap.
  const most = perSecond === null ? 0 : Math.ceil(perSecond);
  const withinMs = perSecond === null ? 0 : (most / perSecond) * 1000 * SPARE;
  // A ring buffer with the instants of the last requests.
  const sent: Instant[] = [];
  let oldest = 0;
  let held: (Hold & { readonly since: Instant }) | null = null;
  return {
    opensAt: (now) => {
      if (most === 0 || sent.length < most) return now;
      const at = sent[oldest]!;
      // If the clock was set back, the process must not wait for the difference.
      return at > now ? now : Math.max(now, Math.ceil(at + withinMs));
    },
    pass: (now) => {
      if (most === 0) return;
      if (sent.length < most) sent.push(now);
      else {
        sent[oldest] = now;
        oldest = (oldest + 1) % most;
      }
    },
    heldAt: (now) => (held !== null && held.since <= now && now < held.until ? held : null),
    hold: (now, hold) => {
      if (held === null || held.until < hold.until) held = { ...hold, since: now };
    },
    answered: (sentAt) => {
      // The same rule as in the ledger: an answer does not end a 429's hold.
      if (held?.reason === 'unavailable' && sentAt > held.since) held = null;
    },
  };
}
