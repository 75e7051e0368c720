/**
 * What one process knows without asking the ledger: what it has just sent, and that upstream has asked it to wait. Looked at
 * right before a request is sent.
 *
 * The ledger spaces the turns, a turn is used when it comes or soon after (`goodForMs`), and no process sends more than the
 * limit in any second (`opensAt`), however long it was held up. So a single process keeps the limit exactly. Of several, the
 * turns that are used within one second lie within that second and `goodForMs` before it; these are at most the limit and
 * `goodForMs / gap` more, rounded up: one request more, above ten a second a tenth more, and only when one process is held up
 * and the others are not. What is not known here is the way to upstream: a request may be held up after it was sent.
 */
import type { Instant } from '../clock.ts';

export type Gate = {
  /** When the next request may be sent without being one too many. */
  opensAt(now: Instant): Instant;
  /** One is sent. */
  pass(now: Instant): void;
  /** What upstream has asked for; null when nobody has to wait. */
  heldAt(now: Instant): Hold | null;
  hold(now: Instant, hold: Hold): void;
  /** Upstream has answered what was asked at this instant. */
  answered(sentAt: Instant): void;
};

export type Hold = { readonly until: Instant; readonly reason: 'limited' | 'unavailable' };

/** A turn that is later than this, or than one gap, might be one too many beside those of other processes. */
const LATE_MS = 100;
/** Little of the hair's breadth that the pace spares (`MARGIN`): the rest of it is for catching up with what came late. */
const SPARE = 1.002;

/** How long after its turn a request may be sent; `gapMs` is from one turn to the next. */
export function goodForMs(gapMs: number, graceMs: number, lateMs = LATE_MS): number {
  return gapMs === 0 ? graceMs : Math.min(graceMs, Math.max(gapMs, lateMs));
}

export function createGate(perSecond: number | null): Gate {
  // As many as fit a second; below one a second, one in the time of one.
  const most = perSecond === null ? 0 : Math.ceil(perSecond);
  const withinMs = perSecond === null ? 0 : (most / perSecond) * 1000 * SPARE;
  // A ring of the last instants.
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
      // As the ledger has it: a limit is not lifted by an answer.
      if (held?.reason === 'unavailable' && sentAt > held.since) held = null;
    },
  };
}
