/** An abort controller that an outer signal aborts, too. */
import { setMaxListeners } from 'node:events';

type LinkedAbort = {
  /** Aborted by its own `abort()`, or by the outer signal with the same reason. */
  readonly controller: AbortController;
  /** Ends the link. Without it, the outer signal would keep the controller for as long as it lives. */
  readonly unlink: () => void;
};

/** `AbortSignal.any` would keep memory for each call if `signal` lives as long as the process. */
export function linkAbort(signal: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  // Node takes the eleventh listener for a leak and prints a warning. Here, as many as there are pieces of work in progress is right.
  if (signal !== undefined) setMaxListeners(0, signal);
  signal?.addEventListener('abort', onAbort, { once: true });
  return { controller, unlink: () => signal?.removeEventListener('abort', onAbort) };
}
