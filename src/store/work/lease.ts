/** Leases: how the owner of a piece of work shows that it is alive, and when another process may take the work over. */
import { type Clock, type Instant, MOST_SKEW_MS } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

/**
 * An owner renews its lease this often, and loses it after `LEASE_EXPIRES_AFTER_MS` without a renewal. It may miss three renewals: a
 * process that a busy machine or a slow database stalls for some seconds keeps its work. Another process looks for expired leases
 * at least every ten seconds, so it takes over the work of a killed process within half a minute.
 *
 * An owner that loses its lease while it is alive does no harm: it learns of that at its next renewal and lets the work go. Each
 * chunk is one job, and only what is still missing when the job runs is requested.
 */
export const LEASE_RENEWED_EVERY_MS = 5_000;
export const LEASE_EXPIRES_AFTER_MS = 20_000;

/**
 * How long BullMQ locks a job for its worker; BullMQ renews the lock itself. Shorter than a lease, so that whoever takes over a
 * backfill finds its chunks unlocked.
 */
export const JOB_LOCK_MS = LEASE_EXPIRES_AFTER_MS / 2;

/** When a lease that is renewed now expires. */
export function leaseEnd(renewedAt: Instant): Instant {
  return renewedAt + LEASE_EXPIRES_AFTER_MS;
}

/** `until` null: nobody holds it. An end that lies further ahead than any lease was written before a clock was set back. */
export function isLeaseAlive(until: Instant | null, now: Instant): boolean {
  return until !== null && until > now && until <= leaseEnd(now) + MOST_SKEW_MS;
}

/** The same as an SQL condition on `heartbeat_at`, the column that holds the last renewal. */
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
  const done = new AbortController();
  const renewing = keepRenewing(clock, signal ? AbortSignal.any([done.signal, signal]) : done.signal, renew);
  try {
    return await work();
  } finally {
    done.abort();
    await renewing;
  }
}

/** Renews a lease until the signal is aborted. If a renewal fails, the next one makes up for it, or another process takes the work. */
export async function keepRenewing(clock: Clock, signal: AbortSignal, renew: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(LEASE_RENEWED_EVERY_MS, signal).catch(() => undefined);
    if (!signal.aborted) await renew().catch(() => undefined);
  }
}
