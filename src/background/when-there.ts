/** Waiting for what is not there yet. */
import { awayReason } from '../ingest/patience.ts';
import { StoreError } from '../store/store-error.ts';
import type { Parts } from './parts.ts';

/** What is not there is looked for so often. */
const LOOK_AGAIN_MS = 2_000;

/** Opens what may not be there yet, again and again, and says so; null when it was told to stop meanwhile. */
export async function whenThere<T>(
  { status, troubles, clock, signal }: Pick<Parts, 'status' | 'troubles' | 'clock' | 'signal'>,
  what: string,
  open: () => Promise<T>,
): Promise<T | null> {
  while (!signal.aborted) {
    try {
      const opened = await open();
      troubles.over(what);
      return opened;
    } catch (error) {
      if (signal.aborted) return null;
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
