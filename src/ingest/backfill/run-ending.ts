/** Ends a run. The first reason counts, and the signal stops everything that is in progress for the run. */
import { setMaxListeners } from 'node:events';
import type { BackfillEnd } from './progress.ts';

export type RunEnding = {
  /** Aborted when the run must end for any reason. */
  readonly signal: AbortSignal;
  stopWith(how: BackfillEnd): void;
  /** Ends the run. The run then rejects with the first of these errors. */
  failWith(error: unknown): void;
  /** `done`, unless `stopWith` was called. */
  end(): BackfillEnd;
  failure(): unknown;
  /** Called when the run is over. */
  close(): void;
};

/** `interruption`: the caller's signal. It ends the run as `interrupted`. */
export function createRunEnding(interruption: AbortSignal): RunEnding {
  const stop = new AbortController();
  // Every worker that waits for a permit listens to the signal: these many listeners are no leak.
  setMaxListeners(0, stop.signal);
  let end: BackfillEnd = { kind: 'done' };
  let failure: unknown = null;
  const stopWith = (how: BackfillEnd) => {
    if (stop.signal.aborted) return;
    end = how;
    stop.abort();
  };
  const interrupt = () => stopWith({ kind: 'interrupted' });
  if (interruption.aborted) interrupt();
  interruption.addEventListener('abort', interrupt, { once: true, signal: stop.signal });
  return {
    signal: stop.signal,
    stopWith,
    failWith: (error) => {
      failure ??= error;
      stop.abort();
    },
    end: () => end,
    failure: () => failure,
    close: () => stop.abort(),
  };
}
