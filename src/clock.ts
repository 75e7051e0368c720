/** The only door to the time of day: everything that needs "now" or a wait receives a `Clock`. */

/** An instant: milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

export type Clock = {
  now(): Instant;
  /** Resolves after `ms` milliseconds (at once when `ms` ≤ 0); rejects with the signal's reason when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** Milliseconds, with fractions, on a clock that nobody sets back or forward. Use it to measure how long something takes. */
export function stopwatch(): number {
  return performance.now();
}

/** 24.8 days: `setTimeout` overflows with a longer delay and would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** How far the clocks of two hosts may differ. An instant further in the future than this was written before a clock was set back. */
export const MOST_SKEW_MS = 5 * 60_000;

export const systemClock: Clock = createScaledClock({ speed: 1 });

/**
 * A clock that starts at `startAt` and runs `speed` times as fast as the machine's. With it, tests go through days in seconds on the real
 * queue and the real database.
 */
export function createScaledClock({ speed, startAt }: { speed: number; startAt?: Instant }): Clock {
  const realStart = Date.now();
  const origin = startAt ?? realStart;
  return {
    now: () =>
      speed === 1 && startAt === undefined ? Date.now() : Math.floor(origin + (Date.now() - realStart) * speed),
    sleep: (ms, signal) => realSleep(ms / speed, signal),
  };
}

function realSleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (ms <= 0) return resolve();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop);
        // What is left of a wait that no timer can hold.
        resolve(realSleep(ms - LONGEST_TIMER_MS, signal));
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    signal?.addEventListener('abort', stop, { once: true });
  });
}
