/**
 * Waits for a database or a queue that is away. A run that holds an answer keeps it until it can be stored: the same request again would
 * spend more of the quota.
 */
import type { Clock, Instant } from '../../clock.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { QueueAway } from '../queue/redis.ts';

/** Why a run waits, or why it ended: its database or its queue cannot be reached. */
export const DATABASE_AWAY = 'the database is away';
export const QUEUE_AWAY = 'the queue is away';
export type AwayReason = typeof DATABASE_AWAY | typeof QUEUE_AWAY;

/** Which of the two cannot be reached; null when the error is about something else. */
export function awayReason(error: unknown): AwayReason | null {
  if (error instanceof QueueAway) return QUEUE_AWAY;
  return isDatabaseAway(error) ? DATABASE_AWAY : null;
}

/**
 * Repeats `work` while the database or the queue is away; every other error is thrown at once. `again`: an earlier attempt was cut off,
 * and may have been committed nevertheless.
 */
export type OutageRetry = <T>(work: (again: boolean) => Promise<T>) => Promise<T>;

/** Does the work once. */
export const withoutRetry: OutageRetry = (work) => work(false);

/** Short, so that this process stores its answer before another process finds the chunk unfinished. A refused connection costs little. */
const RETRY_MS = 500;

export function createOutageRetry({
  clock,
  signal,
  onAway,
  onBack,
}: {
  readonly clock: Clock;
  /** Ends the wait: the work then rejects with the last error of the database. */
  readonly signal: AbortSignal;
  /** Called after each attempt that failed; `until` is when the next attempt begins. May abort the signal. */
  readonly onAway?: (reason: AwayReason, until: Instant) => void;
  readonly onBack?: (reason: AwayReason) => void;
}): OutageRetry {
  const away = new Set<AwayReason>();
  return async (work) => {
    /** What was away for this work; almost always nothing. */
    let met: Set<AwayReason> | null = null;
    for (let again = false; ; again = true) {
      try {
        const result = await work(again);
        // Only a repeated attempt proves that it is back: the answer of the first one may have been on its way already.
        for (const reason of met ?? []) if (away.delete(reason)) onBack?.(reason);
        return result;
      } catch (error) {
        const reason = awayReason(error);
        if (reason === null) throw error;
        met = (met ?? new Set()).add(reason);
        away.add(reason);
        onAway?.(reason, clock.now() + RETRY_MS);
        if (signal.aborted) throw error;
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
        if (signal.aborted) throw error;
      }
    }
  };
}
