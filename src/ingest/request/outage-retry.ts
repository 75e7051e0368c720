/**
 * Waits for a database or a queue that is unavailable. A run that holds an answer keeps it until it can be stored, because the same request again
 * would spend more of the quota.
 */
import type { Clock, Instant } from '../../clock.ts';
import { cannotStore, isDatabaseUnavailable, isLocked } from '../../store/connection/database-unavailable.ts';
import { QueueUnavailable } from '../queue/redis.ts';

/** Why a run waits, or why it ended: its database or its queue cannot be reached, the database cannot write, or another session holds a lock. */
export const DATABASE_IS_UNAVAILABLE = 'the database is unavailable';
export const DATABASE_STORES_NOTHING = 'the database stores nothing: its disk is full, or it is read-only';
export const DATABASE_IS_LOCKED = 'another session holds a lock of the database';
export const QUEUE_IS_UNAVAILABLE = 'the queue is unavailable';
export const DATABASE_OUTAGES = [DATABASE_IS_UNAVAILABLE, DATABASE_STORES_NOTHING, DATABASE_IS_LOCKED] as const;
export type OutageReason = (typeof DATABASE_OUTAGES)[number] | typeof QUEUE_IS_UNAVAILABLE;

/** Which of the outages the error is; null when the error is something else. */
export function outageReason(error: unknown): OutageReason | null {
  if (error instanceof QueueUnavailable) return QUEUE_IS_UNAVAILABLE;
  if (isLocked(error)) return DATABASE_IS_LOCKED;
  if (cannotStore(error)) return DATABASE_STORES_NOTHING;
  return isDatabaseUnavailable(error) ? DATABASE_IS_UNAVAILABLE : null;
}

/**
 * Repeats `work` while the database or the queue is unavailable; it throws every other error at once. `again`: an earlier attempt was cut off, and
 * may have been committed nevertheless.
 */
export type OutageRetry = <T>(work: (again: boolean) => Promise<T>) => Promise<T>;

/** Does the work once. */
export const withoutRetry: OutageRetry = (work) => work(false);

/** Short, so that this process stores its answer before another process finds the chunk unfinished. A refused connection costs little. */
const RETRY_MS = 500;

export function createOutageRetry({
  clock,
  signal,
  onOutage,
  onRecovery,
}: {
  readonly clock: Clock;
  /** Ends the wait: the work then rejects with the last error of the database or the queue. */
  readonly signal: AbortSignal;
  /** Called after each failed attempt; `until` is when the next attempt begins. May abort the signal. */
  readonly onOutage?: (reason: OutageReason, until: Instant, error: unknown) => void;
  readonly onRecovery?: (reason: OutageReason) => void;
}): OutageRetry {
  const away = new Set<OutageReason>();
  let recoveries = 0;
  return async (work) => {
    /** What was unavailable for this work; almost always nothing. */
    let met: Set<OutageReason> | null = null;
    for (let again = false; ; again = true) {
      const before = recoveries;
      try {
        const result = await work(again);
        // Only a repeated attempt proves that the database or the queue is back: the result of a first attempt may be older than the outage.
        for (const reason of met ?? [])
          if (away.delete(reason)) {
            recoveries++;
            onRecovery?.(reason);
          }
        return result;
      } catch (error) {
        const reason = outageReason(error);
        if (reason === null) throw error;
        met = (met ?? new Set()).add(reason);
        // Work that was under way at the recovery may still fail because of the old outage. If the outage is a new one, the next attempt shows it.
        if (before === recoveries) {
          away.add(reason);
          onOutage?.(reason, clock.now() + RETRY_MS, error);
        }
        if (signal.aborted) throw error;
        await clock.sleep(RETRY_MS, signal).catch(() => undefined);
        if (signal.aborted) throw error;
      }
    }
  };
}
