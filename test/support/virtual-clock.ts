/** A clock that moves only on command, and wakes the sleepers whose time has come. It can also be set, which wakes none. */
import type { Clock, Instant } from '../../src/clock.ts';

export type VirtualClock = Clock & {
  /** Time passes. */
  advance(ms: number): void;
  advanceTo(at: Instant): void;
  /** Sets the clock of the machine. */
  set(at: Instant): void;
  /** How many sleep on it. */
  sleepers(): number;
  /**
   * In how long the first sleeper wakes among those that sleep for less than `below` milliseconds in all, or for exactly that long with
   * nothing that could end their sleep; null when there is none.
   */
  firstWakes(below: number): number | null;
  /** How often a sleep began: grows as long as anything is in progress. */
  slept(): number;
  /** The same time as another host sees it, whose clock may be set separately. */
  host(): HostClock;
};

export type HostClock = Clock & {
  /** Sets it this far from the others' clocks from now on. */
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
