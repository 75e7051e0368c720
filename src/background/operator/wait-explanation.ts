/** Why Chandler sends no requests: what holds all requests of the account, and what holds one backfill. */
import type { Budget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatDuration, formatRelative } from '../../core/format.ts';
import type { QuotaState } from '../../quota/quota.ts';
import type { BackfillDetails } from '../../views/backfills/backfill-details.ts';
import { type HeldLock, lockSentence } from '../../views/operations/blocking-sessions.ts';
import { formatMoment, waitingFor } from './wait-reasons.ts';

type AccountState = {
  readonly state: QuotaState;
  readonly budget: Pick<Budget, 'reserved'>;
  readonly refusal: { readonly message: string } | null;
};

/** What holds all requests, or those of backfills. Empty when nothing does. */
export function explainAccountWait({ state, budget, refusal }: AccountState): string[] {
  const { now, hold } = state;
  const reasons: string[] = [];
  if (refusal !== null) reasons.push(`The upstream refuses the key: ${refusal.message}`);
  if (hold !== null) {
    const { until, reason, message } = hold;
    const said = message === '' ? '' : ` It said: ${message}`;
    reasons.push(`All requests wait until ${formatMoment(until, now)}: ${waitingFor(reason)}.${said}`);
  }
  const reserved = budget.reserved(now);
  for (const name of ['month', 'day'] as const) {
    const { limit, spent, reset } = state[name];
    if (limit === null || limit - spent - reserved[name] > 0) continue;
    const used = `${formatCount(spent)} of ${formatCount(limit)} are sent`;
    const rest = spent >= limit ? '' : `, the rest is reserved for the schedules`;
    reasons.push(`Of the requests of the ${name} ${used}${rest}: backfills wait until ${formatMoment(reset, now)}.`);
  }
  return reasons;
}

const NO_SERVICE = 'No service is running. Start one with: chandler service';
/** Replaces `NO_SERVICE` while another session holds a lock: a service may be waiting for that lock before it renews its lease. */
export const SERVICE_SILENT = 'No service sends a heartbeat: none runs, or it waits for the lock.';

export function describeNoService(lock: HeldLock | null): string {
  return lock === null ? NO_SERVICE : SERVICE_SILENT;
}

/** A shorter time without an answer is normal. */
const QUIET_MS = 30_000;

/** Why a backfill does not advance, or a sentence that it does. The first reason is the most important one. */
export function explainBackfillWait(
  details: BackfillDetails,
  {
    account,
    lock,
    now,
  }: { readonly account: readonly string[]; readonly lock: HeldLock | null; readonly now: Instant },
): string[] {
  const { row, services, before, beside, isAlive } = details;
  const { id, state, message, waitUntil, finishedAt } = row;
  if (finishedAt !== null || state === 'done')
    return [`It has ended (${state})${message === null ? '.' : `: ${message}`}`];
  if (state === 'paused') return [`It is paused. Continue it with: chandler backfills resume ${id}`];
  const reasons: string[] = lock === null ? [] : [lockSentence(lock)];
  if (row.isDetached && services === 0) reasons.push(describeNoService(lock));
  if (state === 'running' && !isAlive) reasons.push(silence(row, lock));
  if (state === 'queued' && waitUntil !== null && waitUntil > now)
    reasons.push(
      `It waits until ${formatMoment(waitUntil, now)}${message === null ? '.' : `: ${waitingFor(message)}.`}`,
    );
  reasons.push(...account);
  if (before.length > 0) reasons.push(`${named(before)} before it.`);
  if (state === 'queued' && reasons.length === (lock === null ? 0 : 1) && services > 0)
    reasons.push(freeService(services, beside));
  if (state === 'running') reasons.push(...explainRunningBackfill(details, lock, now));
  return reasons;
}

function silence({ owner, isDetached }: BackfillDetails['row'], lock: HeldLock | null): string {
  if (lock !== null) return `Its process ${owner} sends no heartbeat; it may wait for the lock.`;
  return `Its process ${owner} sends no heartbeat; ${isDetached ? 'a running service takes it over' : 'run the same command again'}.`;
}

function named(ids: readonly number[]): string {
  const shown = ids.slice(0, 5).join(', ');
  const more = ids.length > 5 ? ` and ${ids.length - 5} more` : '';
  return `${ids.length === 1 ? 'Backfill' : 'Backfills'} ${shown}${more} ${ids.length === 1 ? 'goes' : 'go'}`;
}

function freeService(services: number, beside: readonly number[]): string {
  const shown = beside.slice(0, 5).join(', ');
  const busy =
    beside.length === 0 ? '' : beside.length === 1 ? `, and backfill ${shown} runs` : `, and backfills ${shown} run`;
  return `It waits for a free service: ${formatCounted(services, 'service')} ${services === 1 ? 'runs' : 'run'} one backfill at a time${busy}.`;
}

function explainRunningBackfill(
  { row, chunks, beside, lastSentAt }: BackfillDetails,
  lock: HeldLock | null,
  now: Instant,
): string[] {
  const reasons: string[] = [];
  const { retrying, retryFrom } = row;
  if (chunks !== null && retrying > 0 && retrying >= (row.leftRequests ?? 0) && retryFrom !== null)
    reasons.push(`All remaining chunks wait for a retry, the first until ${formatMoment(retryFrom, now)}.`);
  if (beside.length > 0)
    reasons.push(
      `It takes turns with ${beside.length === 1 ? 'backfill' : 'backfills'} ${beside.slice(0, 5).join(', ')}: about one request in ${beside.length + 1} is for it.`,
    );
  const quietMs = lastSentAt === null ? null : now - lastSentAt;
  if (quietMs !== null && quietMs > QUIET_MS) reasons.push(`Its last answer came ${formatDuration(quietMs)} ago.`);
  else if (quietMs !== null)
    reasons.push(
      `${lock === null ? 'It advances: its' : 'Its'} last request was sent ${formatRelative(lastSentAt!, now)}.`,
    );
  return reasons;
}
