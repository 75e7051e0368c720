/** Shares one read among all callers within some time. */
import type { Clock, Instant } from '../../clock.ts';

type SharedReadOptions<A extends readonly unknown[], T> = {
  readonly clock: Pick<Clock, 'now'>;
  /** Callers within so many milliseconds of a read share its result. A result from the future (the clock was set back) counts as old. */
  readonly ms: number;
  readonly read: (...args: A) => Promise<T>;
  /** Whether a failure is shared, too. By default the next call reads again. */
  readonly sharesFailure?: (error: unknown) => boolean;
};

export function createSharedRead<A extends readonly unknown[], T>({
  clock,
  ms,
  read,
  sharesFailure = () => false,
}: SharedReadOptions<A, T>): (...args: A) => Promise<T> {
  let last: { readonly at: Instant; readonly value: Promise<T> } | null = null;
  return (...args) => {
    const now = clock.now();
    if (last !== null && Math.abs(now - last.at) <= ms) return last.value;
    const mine = { at: now, value: read(...args) };
    last = mine;
    mine.value.catch((error: unknown) => {
      if (last === mine && !sharesFailure(error)) last = null;
    });
    return mine.value;
  };
}
