/** A token bucket for each caller: it holds the requests of one second, and refills at the caller's rate. A restart fills all of them. */
import type { Clock, Instant } from '../../clock.ts';

export type TokenBuckets = {
  /** Takes one token of `subject`. Null: taken, or there is no limit; otherwise the milliseconds until there is one. */
  take(subject: string, perSecond: number | null): number | null;
  /** Puts back a token that was taken and turned out not to count. */
  putBack(subject: string, perSecond: number | null): void;
  /** Notes that other processes have taken tokens too: the bucket will not be full before `fullAt`. */
  delay(subject: string, fullAt: Instant): void;
};

/** How often full buckets are deleted: a full bucket needs no entry. */
const SWEEP_EVERY_MS = 10_000;
/** A bucket that would be full only after more than this was used before the clock was set back. It counts as full. */
export const MOST_AHEAD_MS = SWEEP_EVERY_MS;

export function createTokenBuckets(clock: Clock): TokenBuckets {
  /** When each bucket will be full again. This also gives how full it is now. */
  const fullAt = new Map<string, Instant>();
  let sweepAt = 0;
  return {
    take(subject, perSecond) {
      if (perSecond === null) return null;
      const now = clock.now();
      if (now >= sweepAt || now < sweepAt - 2 * SWEEP_EVERY_MS) {
        sweepAt = now + SWEEP_EVERY_MS;
        for (const [name, at] of fullAt) if (at <= now || at > now + MOST_AHEAD_MS) fullAt.delete(name);
      }
      const tokenMs = 1000 / perSecond;
      const known = fullAt.get(subject) ?? now;
      const from = known > now + MOST_AHEAD_MS ? now : Math.max(now, known);
      const lateMs = from + tokenMs - (now + Math.max(1000, tokenMs));
      if (lateMs > 1e-6) return lateMs;
      fullAt.set(subject, from + tokenMs);
      return null;
    },
    delay(subject, at) {
      fullAt.set(subject, Math.max(at, fullAt.get(subject) ?? at));
    },
    putBack(subject, perSecond) {
      const known = fullAt.get(subject);
      if (perSecond !== null && known !== undefined) fullAt.set(subject, known - 1000 / perSecond);
    },
  };
}
