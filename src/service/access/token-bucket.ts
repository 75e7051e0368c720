/** How fast a caller may ask: so many requests at once, and so many a second. Kept in memory: it forgives a restart. */
import type { Clock, Instant } from '../../clock.ts';

export type Pace = {
  /** Null: go on; else how many milliseconds too early it is. */
  tooEarly(subject: string, perSecond: number | null): number | null;
  /** The last time that it was not too early has turned out not to count. */
  giveBack(subject: string, perSecond: number | null): void;
};

/** Callers that have been silent for a second have their whole second again, so nothing of them needs to be remembered. */
const FORGET_EVERY_MS = 10_000;

export function createPace(clock: Clock): Pace {
  /** When a caller's bucket would be full again. */
  const fullAt = new Map<string, Instant>();
  let sweepAt = 0;
  return {
    tooEarly(subject, perSecond) {
      if (perSecond === null) return null;
      const now = clock.now();
      if (now >= sweepAt || now < sweepAt - 2 * FORGET_EVERY_MS) {
        sweepAt = now + FORGET_EVERY_MS;
        for (const [name, at] of fullAt) if (at <= now || at > now + FORGET_EVERY_MS) fullAt.delete(name);
      }
      const gapMs = 1000 / perSecond;
      // A clock that was set back must not stop anybody for the difference.
      const held = fullAt.get(subject) ?? now;
      const from = Math.max(now, held > now + FORGET_EVERY_MS ? now : held);
      const burstMs = Math.max(1000, gapMs);
      const lateMs = from + gapMs - (now + burstMs);
      if (lateMs > 1e-6) return lateMs;
      fullAt.set(subject, from + gapMs);
      return null;
    },
    giveBack(subject, perSecond) {
      const held = fullAt.get(subject);
      if (perSecond !== null && held !== undefined) fullAt.set(subject, held - 1000 / perSecond);
    },
  };
}
