/** What anybody may ask for costs the database the same however many ask: one reading at a time, which answers all of them for a second. */
import type { Clock, Instant } from '../../clock.ts';

const KEPT_MS = 1_000;

type Reading<T> = { endedAt: Instant | null; readonly value: Promise<T> };

/** `read` for everybody: never twice at once, and the same (by its JSON) not again for a second. */
export function sharedReading<A, T>(clock: Clock, read: (asked: A) => Promise<T>): (asked: A) => Promise<T> {
  const kept = new Map<string, Reading<T>>();
  let last: Promise<unknown> = Promise.resolve();
  const isOver = ({ endedAt }: Reading<T>, now: Instant) =>
    endedAt !== null && (now < endedAt || now - endedAt >= KEPT_MS);
  return (asked) => {
    for (const [key, reading] of kept) if (isOver(reading, clock.now())) kept.delete(key);
    const key = JSON.stringify(asked);
    const known = kept.get(key);
    if (known !== undefined) return known.value;
    const value = last
      .then(() => read(asked))
      .finally(() => {
        reading.endedAt = clock.now();
      });
    const reading: Reading<T> = { endedAt: null, value };
    last = value.catch(() => undefined);
    kept.set(key, reading);
    return value;
  };
}
