/** Values that change once a minute are computed once a minute. */
import type { Instant } from '../../clock.ts';

export function memoPerMinute<K, T>(make: (key: K, now: Instant) => T): (key: K, now: Instant) => T {
  let minute = NaN;
  const made = new Map<K, T>();
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
