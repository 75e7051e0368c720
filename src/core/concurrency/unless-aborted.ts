/** Stops waiting for work when a signal is aborted, or when the work takes too long. */
import type { Clock } from '../../clock.ts';

/** Resolves or rejects like `work`, but rejects with the signal's reason as soon as the signal is aborted. The work itself may go on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.finally(() => signal.removeEventListener('abort', stop)).then(resolve, reject);
  });
}

/** Resolves when the signal is aborted. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return unlessAborted(new Promise<never>(() => undefined), signal).catch(() => undefined);
}

/**
 * Aborts `stop` with `late` when `work` takes more than `ms`. Rejects with the reason of `stop` as soon as the deadline or another caller
 * aborts it, even when the work ignores the signal.
 */
export async function withDeadline<T>(
  clock: Clock,
  {
    ms,
    late,
    stop = new AbortController(),
  }: { readonly ms: number; readonly late: Error; readonly stop?: AbortController },
  work: () => Promise<T>,
): Promise<T> {
  stop.signal.throwIfAborted();
  const done = new AbortController();
  clock.sleep(ms, done.signal).then(
    () => stop.abort(late),
    () => undefined,
  );
  try {
    return await unlessAborted(work(), stop.signal);
  } finally {
    done.abort();
  }
}
