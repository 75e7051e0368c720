/** Work that is given up when it takes too long. */
import type { Clock } from '../clock.ts';
import { unlessAborted } from './unless-aborted.ts';

/**
 * Aborts `stop` with `late` when `work` takes more than `ms`. Rejects with the reason of `stop` as soon as that is aborted, by the
 * deadline or by somebody else, even when the work ignores it.
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
