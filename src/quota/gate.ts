/**
 * What one process knows without asking the ledger: when it sent its last requests, and until when upstream told it to wait. It is
 * checked right before a request is sent.
 *
 * The ledger spaces the permits. A permit is used at its instant or soon after (`goodForMs`), and no process sends more than the
 * limit in any second (`opensAt`), however long it stalled. So a single process keeps the limit exactly. With several processes, the
 * permits used within one second are those of that second and of `goodForMs` before it: at most the limit and `goodForMs / gap` more,
 * rounded up. That is one request more (above ten a second, a tenth more), and only when one process stalls and the others do not.
 * The gate does not know the network: a request may be delayed after it was sent.
 */
import type { Instant } from '../clock.ts';

export type Gate = {
  /** When the next request may be sent without exceeding the limit. */
  opensAt(now: Instant): Instant;
  /** A request is sent. */
  pass(now: Instant): void;
  /** The pause that upstream asked for; null when there is none. */
  heldAt(now: Instant): Hold | null;
  hold(now: Instant, hold: Hold): void;
  /** Upstream has answered the request that was sent at this instant. */
  answered(sentAt: Instant): void;
};

type Hold = { readonly until: Instant; readonly reason: 'limited' | 'unavailable' };

/** A permit used later than this, or than one gap, could exceed the limit together with those of other processes. */
const LATE_MS = 100;
/** A fifth of the margin by which the rate stays below the limit (`MARGIN`). The rest is for requests that are sent late. */
const SPARE = 1.002;

/** How long after its instant a permit may be used; `gapMs` is from one permit to the next. */
export function goodForMs(gapMs: number, graceMs: number, lateMs = LATE_MS): number {
  return gapMs === 0 ? graceMs : Math.min(graceMs, Math.max(gapMs, lateMs));
}

export function createGate(perSecond: number | null): Gate {
  // As many as fit a second; below one a second, one in the time of one.
  const most = perSecond === null ? 0 : Math.ceil(perSecond);
  const withinMs = perSecond === null ? 0 : (most / perSecond) * 1000 * SPARE;
  // A ring of the instants of the last requests.
  const sent: Instant[] = [];
  let oldest = 0;
  let held: (Hold & { readonly since: Instant }) | null = null;
  return {
    opensAt: (now) => {
      if (most === 0 || sent.length < most) return now;
      const at = sent[oldest]!;
      // A clock that was set back must not stop us for the difference.
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
