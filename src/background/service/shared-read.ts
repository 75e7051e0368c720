/** Public reads cost the database the same however many ask: one read at a time, whose result everybody gets for a second. */
import pLimit from 'p-limit';
import type { Clock, Instant } from '../../clock.ts';

const KEPT_MS = 1_000;

type Reading<T> = { endedAt: Instant | null; readonly value: Promise<T> };

/** `read` for everybody: never twice at once, and not again with the same argument (by its JSON) for a second. */
export function sharedRead<A, T>(clock: Clock, read: (argument: A) => Promise<T>): (argument: A) => Promise<T> {
  const singleFlight = pLimit(1);
  const readings = new Map<string, Reading<T>>();
  const isOver = ({ endedAt }: Reading<T>, now: Instant) =>
    endedAt !== null && (now < endedAt || now - endedAt >= KEPT_MS);
  return (argument) => {
    for (const [key, reading] of readings) if (isOver(reading, clock.now())) readings.delete(key);
    const key = JSON.stringify(argument);
    const known = readings.get(key);
    if (known !== undefined) return known.value;
    const value = singleFlight(() => read(argument)).finally(() => {
      reading.endedAt = clock.now();
    });
    const reading: Reading<T> = { endedAt: null, value };
    readings.set(key, reading);
    return value;
  };
}
