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
  /**
   * In how long the first of those wakes who sleep for less than `below` milliseconds in all, or for just as long with nothing that could
   * end their sleep; null when nobody does.
   */
  firstWakes(below: number): number | null;
  /** How often somebody went to sleep: grows as long as anything goes on. */
  slept(): number;
  /** The same time as another host sees it, whose clock may be set by itself. */
  host(): HostClock;
};

export type HostClock = Clock & {
  /** Somebody sets it: so far from the others' from now on. */
  setOff(ms: number): void;
};

type Sleeper = { readonly until: number; readonly ms: number; readonly isFixed: boolean; readonly wake: () => void };

export function createVirtualClock(start: Instant): VirtualClock {
  let elapsed = 0;
  let offset = start;
  const sleeping = new Set<Sleeper>();
  let slept = 0;
  const advance = (ms: number) => {
    elapsed += ms;
    for (const sleeper of [...sleeping].sort((a, b) => a.until - b.until)) if (sleeper.until <= elapsed) sleeper.wake();
  };
  const now = () => offset + elapsed;
  const sleep: Clock['sleep'] = (ms, signal) =>
    new Promise((resolve, reject) => {
      slept++;
      if (signal?.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const end = (then: () => void) => {
        sleeping.delete(sleeper);
        signal?.removeEventListener('abort', stop);
        then();
      };
      const stop = () => end(() => reject(signal?.reason));
      const isFixed = signal === undefined;
      const sleeper = { until: elapsed + ms, ms, isFixed, wake: () => end(resolve) };
      sleeping.add(sleeper);
      signal?.addEventListener('abort', stop, { once: true });
    });
  return {
    now,
    sleep,
    advance,
    advanceTo: (at) => advance(Math.max(0, at - offset - elapsed)),
    set: (at) => {
      offset = at - elapsed;
    },
    sleepers: () => sleeping.size,
    firstWakes: (below) => {
      const isShort = ({ ms, isFixed }: Sleeper) => ms < below || (isFixed && ms === below);
      const short = [...sleeping].filter(isShort).map(({ until }) => until);
      return short.length === 0 ? null : Math.max(0, Math.min(...short) - elapsed);
    },
    slept: () => slept,
    host: () => {
      let off = 0;
      return {
        now: () => now() + off,
        sleep,
        setOff: (ms) => {
          off = ms;
        },
      };
    },
  };
}
