/** A clock that only moves when told, or when somebody sleeps on it. */
import type { Clock, Instant } from '../../src/clock.ts';

export type ManualClock = Clock & { set(now: Instant): void; advance(ms: number): void };

export function createManualClock(start: Instant): ManualClock {
  let now = start;
  return {
    now: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      now += Math.max(0, ms);
    },
    set: (instant) => {
      now = instant;
    },
    advance: (ms) => {
      now += ms;
    },
  };
}
