/** Waiting for what is not there yet. */
import { unlessAborted } from '../core/unless-aborted.ts';
import { awayReason } from '../ingest/patience.ts';
import { StoreError } from '../store/store-error.ts';
import type { Parts } from './parts.ts';

/** What is not there is looked for so often. */
const LOOK_AGAIN_MS = 2_000;

/** What is being opened when it is told to stop may take so long: a server that is silent is not waited for. */
const LATE_MS = 5_000;

/**
 * Opens what may not be there yet, again and again, and says so; null when it was told to stop meanwhile. `giveBack`: what is done with
 * something that is open only then; null: `open` ends by itself when told to.
 */
export async function whenThere<T>(
  { status, troubles, clock, signal }: Pick<Parts, 'status' | 'troubles' | 'clock' | 'signal'>,
  what: string,
  open: () => Promise<T>,
  giveBack: ((opened: T) => Promise<unknown>) | null,
): Promise<T | null> {
  while (!signal.aborted) {
    const opening = open();
    try {
      const opened = await (giveBack === null ? opening : unlessAborted(opening, signal));
      troubles.over(what);
      return opened;
    } catch (error) {
      if (signal.aborted) {
        if (giveBack !== null)
          await Promise.race([opening.then(giveBack).catch(() => undefined), clock.sleep(LATE_MS)]);
        return null;
      }
      if (!isPassing(error)) throw error;
      status.phase = 'waiting';
      troubles.met(what, error as Error);
    }
    await clock.sleep(LOOK_AGAIN_MS, signal).catch(() => undefined);
  }
  return null;
}

/** Waiting may help: it is away, or somebody else will migrate it. */
function isPassing(error: unknown): boolean {
  return awayReason(error) !== null || (error instanceof StoreError && !error.isConfiguration);
}
