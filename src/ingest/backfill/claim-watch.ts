/** Renews the claim on a backfill while it runs, and tells the run to give it up when it is no longer this process's to do. */
import type { Clock, Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type ClaimedBackfill, renewClaim } from '../../store/work/backfill-queue.ts';
import { outageReason } from '../request/outage-retry.ts';

export type ClaimWatchDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** `host:pid`. */
  readonly owner: string;
  /** When a backfill, of which so many requests are left, will be done by what is known of the quota and of others; null: nobody can say. */
  readonly finishOf: (id: number, left: number) => Promise<Instant | null>;
  /** Something that it cannot do now, and will try again. */
  readonly onError: (error: Error) => void;
};

/**
 * Gives signs of life until `release` fires, and fires it when the backfill was paused or cancelled, or a more urgent one waits; or when it
 * has another priority now, for its chunks stand in the queue by the one that it had. `left`: requests; null as long as nobody knows better
 * than what is written down.
 */
export async function watchClaim(
  deps: ClaimWatchDeps & { readonly lookMs: number },
  { id, priority }: ClaimedBackfill,
  release: AbortController,
  left: () => number | null,
): Promise<void> {
  const { sql, clock, owner, onError } = deps;
  while (!release.signal.aborted) {
    try {
      const leftRequests = left();
      const known = leftRequests === null ? null : { leftRequests, finishAt: await forecast(deps, id, leftRequests) };
      const claim = await renewClaim(sql, { id, owner, now: clock.now(), known });
      if (!claim.isMine || claim.isPreempted || claim.priority !== priority) return release.abort();
    } catch (error) {
      // The run itself waits for a database that is unavailable.
      if (outageReason(error) === null) onError(asError(error));
    }
    await clock.sleep(deps.lookMs, release.signal).catch(() => undefined);
  }
}

/** One that cannot be made must not look like a process that was killed. */
function forecast({ finishOf, onError }: ClaimWatchDeps, id: number, left: number): Promise<Instant | null> {
  return finishOf(id, left).catch((error: unknown) => {
    if (outageReason(error) === null) onError(asError(error));
    return null;
  });
}
