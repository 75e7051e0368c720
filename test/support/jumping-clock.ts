/**
 * A clock that runs `speed` times as fast as the machine's, and can be set forward while nothing sleeps. It stands still while this process
 * does not run: a second in which a busy machine suspends us would otherwise be minutes of the test's time, in which nothing could do what
 * is due.
 */
import { type Clock, createScaledClock } from '../../src/clock.ts';

export type JumpingClock = Clock & { advanceTo(at: number): void };

const machine = createScaledClock({ speed: 1 });

/** How often this process records that it runs. Of a longer pause between two records, at most LONGEST_MS count as time. */
const SIGN_MS = 10;
const LONGEST_MS = 10 * SIGN_MS;

let ran = 0;
let seenAt = performance.now();
/** For how long this process has run. */
function ranMs(): number {
  const now = performance.now();
  ran += Math.min(now - seenAt, LONGEST_MS);
  seenAt = now;
  return ran;
}
setInterval(ranMs, SIGN_MS).unref();

export function createJumpingClock({
  speed,
  startAt,
}: {
  readonly speed: number;
  readonly startAt: number;
}): JumpingClock {
  const from = ranMs();
  let ahead = 0;
  const now = () => Math.floor(startAt + (ranMs() - from) * speed) + ahead;
  return {
    now,
    sleep: async (ms, signal) => {
      const until = ranMs() + ms / speed;
      // A timer may fire a moment early.
      let left = ms / speed;
      do {
        await machine.sleep(left, signal);
        left = until - ranMs();
      } while (left >= 1);
    },
    advanceTo: (at) => {
      ahead += Math.max(0, at - now());
    },
  };
}
