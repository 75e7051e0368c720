/** A clock that runs `speed` times as fast as the machine's, and can be set forward while nobody sleeps. */
import { type Clock, createScaledClock } from '../../src/clock.ts';

export type JumpingClock = Clock & { advanceTo(at: number): void };

export function createJumpingClock(options: { readonly speed: number; readonly startAt: number }): JumpingClock {
  const base = createScaledClock(options);
  let ahead = 0;
  return {
    now: () => base.now() + ahead,
    sleep: base.sleep,
    advanceTo: (at) => {
      ahead += Math.max(0, at - (base.now() + ahead));
    },
  };
}
