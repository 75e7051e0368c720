/** Values that are computed at the first call, and cached. */
import type { Instant } from '../../clock.ts';

/** Returns a function that computes the value once. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Returns a function that computes a value once a minute for each key. */
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
