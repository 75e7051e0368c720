/** A clock that moves only when a test moves it or when a caller sleeps on it. */
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
