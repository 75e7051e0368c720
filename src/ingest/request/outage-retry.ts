/**
 * Sitting out a database, or a queue, that is away. A run that has an answer in its hands keeps it until it can be stored: asked again it
 * would cost another request.
 */
import type { Clock, Instant } from '../../clock.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { QueueAway } from '../queue/redis.ts';

/** Why a run waits, or has ended, when its database or its queue cannot be reached. */
export const DATABASE_AWAY = 'the database is away';
export const QUEUE_AWAY = 'the queue is away';
export type AwayReason = typeof DATABASE_AWAY | typeof QUEUE_AWAY;

/** Who cannot be reached, when that is what the error is about. */
export function awayReason(error: unknown): AwayReason | null {
  if (error instanceof QueueAway) return QUEUE_AWAY;
  return isDatabaseAway(error) ? DATABASE_AWAY : null;
}

/**
 * Does `work` again until what it needs is there for it; whatever else it rejects with comes through at once. `again`: an earlier
 * attempt was cut off, and may have been committed all the same.
 */
export type OutageRetry = <T>(work: (again: boolean) => Promise<T>) => Promise<T>;

/** None. */
export const withoutRetry: OutageRetry = (work) => work(false);

/** Often: whoever else sees a chunk unattended must not be faster. A refused connection costs next to nothing. */
const RETRY_MS = 500;

export function createOutageRetry({
  clock,
  signal,
  onAway,
  onBack,
}: {
  readonly clock: Clock;
  /** Ends the waiting: what is waited for then rejects with what the database said last. */
  readonly signal: AbortSignal;
  /** Called whenever it is found away; `until` is when it is looked for again. May abort the signal. */
  readonly onAway: (reason: AwayReason, until: Instant) => void;
  readonly onBack: (reason: AwayReason) => void;
}): OutageRetry {
  const away = new Set<AwayReason>();
  return async (work) => {
    /** What this work has met; hardly ever anything. */
    let met: Set<AwayReason> | null = null;
    for (let again = false; ; again = true) {
      try {
        const result = await work(again);
        // Only what was tried again proves it: an answer may still have been on its way.
        for (const reason of met ?? []) if (away.delete(reason)) onBack(reason);
        return result;
      } catch (error) {
        const reason = awayReason(error);
        if (reason === null) throw error;
        met = (met ?? new Set()).add(reason);
        away.add(reason);
        onAway(reason, clock.now() + RETRY_MS);
        if (signal.aborted) throw error;
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
        if (signal.aborted) throw error;
      }
    }
  };
}
