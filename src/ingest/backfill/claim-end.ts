/** Writes down how a claimed backfill ended: done, failed, or given back to whoever claims it next. */
import type { Clock, Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type ClaimedBackfill, endClaim } from '../../store/work/backfill-queue.ts';
import { ConfigurationError } from '../outcome.ts';
import type { BackfillRun } from './backfill.ts';

export type BackfillEndTold = {
  readonly id: number;
  readonly state: 'done' | 'failed' | 'queued' | 'taken';
  readonly message: string | null;
  readonly waitUntil: Instant | null;
  readonly requests: number;
  readonly stored: number;
};

export type ClaimEndDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** `host:pid`. */
  readonly owner: string;
};

/** A longer wait gives the place to another; this backfill is claimed again when it is over. */
export const MOST_WAIT_MS = 60_000;
const LONGEST_MESSAGE = 1_000;

/** Database errors reject. */
export async function endRun(
  { sql, clock, owner }: ClaimEndDeps,
  { id }: ClaimedBackfill,
  run: BackfillRun,
): Promise<BackfillEndTold> {
  const claim = { id, owner, now: clock.now() };
  const { requests, stored } = run.totals ?? run.seen;
  const told = { id, requests, stored };
  switch (run.end.kind) {
    case 'done': {
      const message = whatIsLeft(run);
      await endClaim(sql, claim, { state: 'done', leftRequests: 0, message });
      return { ...told, state: 'done', message, waitUntil: null };
    }
    case 'stopped': {
      const { until, reason } = run.end;
      await endClaim(sql, claim, { state: 'queued', waitUntil: until, message: reason });
      return { ...told, state: 'queued', message: reason, waitUntil: until };
    }
    case 'misconfigured': {
      const { message } = run.end;
      await endClaim(sql, claim, { state: 'failed', leftRequests: null, message });
      return { ...told, state: 'failed', message, waitUntil: null };
    }
    case 'interrupted':
      await endClaim(sql, claim, { state: 'queued', waitUntil: null, message: null });
      return { ...told, state: 'taken', message: null, waitUntil: null };
  }
}

/** The run rejected. `onUnwritten` is told what prevents that this is written down: the claim then runs out by itself. */
export async function endBroken(
  { sql, clock, owner }: ClaimEndDeps,
  { id }: ClaimedBackfill,
  error: Error,
  onUnwritten: (error: unknown) => void,
): Promise<BackfillEndTold> {
  const claim = { id, owner, now: clock.now() };
  const { message } = error;
  const told = { id, requests: 0, stored: 0, message };
  if (error instanceof ConfigurationError) {
    await endClaim(sql, claim, { state: 'failed', leftRequests: null, message }).catch(onUnwritten);
    return { ...told, state: 'failed', waitUntil: null };
  }
  const waitUntil = clock.now() + MOST_WAIT_MS;
  await endClaim(sql, claim, { state: 'queued', waitUntil, message }).catch(onUnwritten);
  return { ...told, state: 'queued', waitUntil };
}

/** What a backfill that has ended could not get; null when it got everything. */
function whatIsLeft({ failed, refused }: BackfillRun): string | null {
  const parts = [
    ...(failed.length === 0
      ? []
      : [`${formatCounted(failed.length, 'chunk')} could not be had (${failed[0]!.message})`]),
    ...[...refused].map(
      ([reason, { chunks, message }]) => `${formatCounted(chunks, 'chunk')} refused, ${reason}: ${message}`,
    ),
  ];
  return parts.length === 0 ? null : parts.join('; ').slice(0, LONGEST_MESSAGE);
}
