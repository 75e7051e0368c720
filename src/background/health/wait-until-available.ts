/** Waiting for what is not there yet. */
import type { Clock, Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { unlessAborted } from '../../core/unless-aborted.ts';
import { AccountUnknown, KeyRefused } from '../../ingest/outcome.ts';
import { awayReason } from '../../ingest/request/outage-retry.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import type { Troubles } from './incidents.ts';
import { ACCOUNT, type ServiceStatus } from './service-status.ts';

/** What is not there is looked for so often. */
const LOOK_AGAIN_MS = 2_000;
/** An upstream that tells neither who we are nor how long to wait: each look costs a request, so a look is never much earlier. */
const RETRY_MS = 60_000;
const backoff = createBackoff({ firstMs: RETRY_MS, mostMs: 15 * 60_000 });

/** What is being opened when it is told to stop may take so long: a server that is silent is not waited for. */
const LATE_MS = 5_000;

/** Who waits: where it says so, and what ends it. */
type Waiting = {
  readonly status: ServiceStatus;
  readonly troubles: Troubles;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

/**
 * Opens what may not be there yet, again and again, and says so; null when it was told to stop meanwhile. `giveBack`: what is done with
 * something that is open only then; null: `open` ends by itself when told to.
 */
export async function whenThere<T>(
  { status, troubles, clock, signal }: Waiting,
  what: string,
  open: () => Promise<T>,
  giveBack: ((opened: T) => Promise<unknown>) | null,
): Promise<T | null> {
  const missed = new Set([what]);
  let asked = 0;
  while (!signal.aborted) {
    let waitMs = LOOK_AGAIN_MS;
    const opening = open();
    try {
      const opened = await (giveBack === null ? opening : unlessAborted(opening, signal));
      for (const one of missed) troubles.over(one);
      return opened;
    } catch (error) {
      if (signal.aborted) {
        if (giveBack !== null)
          await Promise.race([opening.then(giveBack).catch(() => undefined), clock.sleep(LATE_MS)]);
        return null;
      }
      if (!isPassing(error)) throw error;
      status.phase = 'waiting';
      const isAccount = error instanceof AccountUnknown || error instanceof KeyRefused;
      if (isAccount) waitMs = waitForAccount(error, asked++, clock.now());
      // What was opened before it is there.
      if (isAccount) troubles.over(what);
      const away = isAccount ? ACCOUNT : what;
      missed.add(away);
      troubles.met(away, error as Error);
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
  return null;
}

function waitForAccount(error: AccountUnknown | KeyRefused, asked: number, now: Instant): number {
  // Another process may have asked meanwhile, or somebody by hand; looking costs no request.
  if (error instanceof KeyRefused) return Math.min(RETRY_MS, Math.max(LOOK_AGAIN_MS, error.askedAgainAt - now));
  const { lookAgainAt } = error;
  if (lookAgainAt !== null) return Math.max(LOOK_AGAIN_MS, lookAgainAt - now);
  return backoff(asked, WHOLE_BOUND);
}

/** Waiting may help: it is away, or somebody else will migrate it. */
function isPassing(error: unknown): boolean {
  return (
    error instanceof AccountUnknown ||
    error instanceof KeyRefused ||
    awayReason(error) !== null ||
    (error instanceof StoreError && !error.isConfiguration)
  );
}
