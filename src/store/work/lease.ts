/** Leases: the owner of a piece of work shows with a lease that it is alive; another process may take over after the lease expires. */
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { linkAbort } from '../../core/concurrency/linked-abort.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/**
 * An owner renews its lease this often, and loses it after `LEASE_EXPIRES_AFTER_MS` without a renewal. It may miss three renewals, so a
 * process that a busy machine or a slow database stalls for some seconds keeps its work. Other processes look for expired leases
 * at least every ten seconds, so one of them takes over the work of a killed process within half a minute.
 *
 * An owner that loses its lease while it is alive does no harm: it finds out at its next renewal and stops the work. Each
 * chunk is one job, and a job requests only what is still missing when it runs.
 */
export const LEASE_RENEWED_EVERY_MS = 5_000;
export const LEASE_EXPIRES_AFTER_MS = 20_000;

/**
 * How long BullMQ locks a job for its worker; BullMQ renews the lock itself. It is shorter than a lease, so that a process that takes over
 * a backfill finds its chunks unlocked.
 */
export const JOB_LOCK_MS = LEASE_EXPIRES_AFTER_MS / 2;

/** When a lease that is renewed now expires. */
export function leaseEnd(renewedAt: Instant): Instant {
  return renewedAt + LEASE_EXPIRES_AFTER_MS;
}

/** `until` is null when no process holds the lease. An end further ahead than any lease was written before a clock was set back. */
export function isLeaseAlive(until: Instant | null, now: Instant): boolean {
  return until !== null && until > now && until <= leaseEnd(now) + MOST_SKEW_MS;
}

/** The same as an SQL condition on `heartbeat_at`, the column with the last renewal. */
export function leaseIsAlive(sql: SqlOrTransaction, now: Instant) {
  return sql`(heartbeat_at > ${now - LEASE_EXPIRES_AFTER_MS} and heartbeat_at <= ${now + MOST_SKEW_MS})`;
}

/** Does `work`, and renews its lease meanwhile. An aborted signal ends the renewals only. */
export async function holdingLease<T>(
  {
    clock,
    renew,
    signal,
  }: { readonly clock: Clock; readonly renew: () => Promise<unknown>; readonly signal?: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  const { controller: done, unlink } = linkAbort(signal);
  const renewing = keepRenewing(clock, done.signal, renew);
  try {
    return await work();
  } finally {
    done.abort();
    unlink();
    await renewing;
  }
}

/** Renews a lease until the signal is aborted. It ignores a failed renewal: the next one succeeds, or another process takes the work. */
export async function keepRenewing(clock: Clock, signal: AbortSignal, renew: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(LEASE_RENEWED_EVERY_MS, signal).catch(() => undefined);
    if (!signal.aborted) await renew().catch(() => undefined);
  }
}
