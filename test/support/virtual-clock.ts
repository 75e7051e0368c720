/** A clock that moves only when told; whoever sleeps on it wakes when it has come so far. It can also be set, which wakes nobody. */
import type { Clock, Instant } from '../../src/clock.ts';

export type VirtualClock = Clock & {
  /** Time passes. */
  advance(ms: number): void;
  advanceTo(at: Instant): void;
  /** Somebody sets the clock of the machine. */
  set(at: Instant): void;
  /** How many sleep on it. */
  sleepers(): number;
};

type Sleeper = { readonly until: number; readonly wake: () => void };

export function createVirtualClock(start: Instant): VirtualClock {
  let elapsed = 0;
  let offset = start;
  const sleeping = new Set<Sleeper>();
  const advance = (ms: number) => {
    elapsed += ms;
    for (const sleeper of [...sleeping].sort((a, b) => a.until - b.until)) if (sleeper.until <= elapsed) sleeper.wake();
  };
  return {
    now: () => offset + elapsed,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        if (ms <= 0) return resolve();
        const end = (then: () => void) => {
          sleeping.delete(sleeper);
          signal?.removeEventListener('abort', stop);
          then();
        };
        const stop = () => end(() => reject(signal?.reason));
        const sleeper = { until: elapsed + ms, wake: () => end(resolve) };
        sleeping.add(sleeper);
        signal?.addEventListener('abort', stop, { once: true });
      }),
    advance,
    advanceTo: (at) => advance(Math.max(0, at - offset - elapsed)),
    set: (at) => {
      offset = at - elapsed;
    },
    sleepers: () => sleeping.size,
  };
}
