/** Values that move once a minute are not made twice for the same minute. */
import type { Instant } from '../../clock.ts';

export function memoPerMinute<T>(make: (key: string, now: Instant) => T): (key: string, now: Instant) => T {
  let minute = NaN;
  const made = new Map<string, T>();
  return (key, now) => {
    if (Math.floor(now / 60_000) !== minute) {
      made.clear();
      minute = Math.floor(now / 60_000);
    }
    const value = made.has(key) ? made.get(key)! : make(key, now);
    made.set(key, value);
    return value;
  };
}
