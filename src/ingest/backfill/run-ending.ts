/** How a run ends: the first reason counts, and everything that is under way for it is told to stop. */
import { setMaxListeners } from 'node:events';
import type { BackfillEnd } from './progress.ts';

export type RunEnding = {
  /** Fires when the run shall end, for whatever reason. */
  readonly signal: AbortSignal;
  stopWith(how: BackfillEnd): void;
  /** What the run then rejects with: the first of these errors. */
  failWith(error: unknown): void;
  /** `done` until something else is said. */
  end(): BackfillEnd;
  failure(): unknown;
  /** The run is over. */
  close(): void;
};

/** `interruption`: from outside; it ends the run as `interrupted`. */
export function createRunEnding(interruption: AbortSignal): RunEnding {
  const stop = new AbortController();
  // Every worker that waits for its turn listens; that is no leak.
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
