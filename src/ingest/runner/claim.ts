/** The claim of a service on a backfill: renewed while the backfill runs, and ended as done, failed, or given back to the queue. */
import type { Clock, Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { formatCounted } from '../../core/format.ts';
import { DAY, MINUTE } from '../../core/interval.ts';
import type { BackfillFinish } from '../../store/backfill/backfill-finish.ts';
import { type ClaimedBackfill, endClaim, renewClaim } from '../../store/backfill/backfill-queue.ts';
import { ANOTHER_BACKFILL } from '../../store/backfill/slot-owner.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { BackfillRun } from '../backfill/backfill.ts';
import type { RunState } from '../backfill/run-chunks.ts';
import { verdictOf } from '../backfill/verdict.ts';
import { ConfigurationError, KeyRefused } from '../outcome.ts';
import { outageReason } from '../request/outage-retry.ts';

export type ClaimDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** `host:pid`. */
  readonly owner: string;
  /** When a backfill will be done that is so far; null: nothing new, what was told stays. */
  readonly finishOf: (id: number, state: RunState) => Promise<BackfillFinish | null>;
  /** Called with an error after which the service tries again. */
  readonly onError: (error: Error) => void;
};

/**
 * Renews the claim until `release` is aborted. It aborts `release` itself when the backfill was paused or cancelled, when a more urgent one
 * waits, or when the priority has changed (the chunks in the queue have the old one). `readState`: null while the run is not planned.
 */
export async function watchClaim(
  { sql, clock, owner, finishOf, onError, lookMs }: ClaimDeps & { readonly lookMs: number },
  { id, priority, claimedAt }: ClaimedBackfill,
  release: AbortController,
  readState: () => Promise<RunState | null>,
): Promise<void> {
  // The run itself waits for an unavailable database.
  const report = (error: unknown) => {
    if (outageReason(error) === null) onError(asError(error));
    return null;
  };
  while (!release.signal.aborted) {
    try {
      const state = await readState();
      // Without a new forecast the claim must be renewed all the same, or the process would look dead.
      const known = state === null ? null : { ...state, finish: await finishOf(id, state).catch(report) };
      const claim = await renewClaim(sql, { id, owner, now: clock.now(), claimedAt, known });
      if (!claim.isMine || claim.isPreempted || claim.priority !== priority) return release.abort();
    } catch (error) {
      report(error);
    }
    await clock.sleep(lookMs, release.signal).catch(() => undefined);
  }
}

/**
 * How a claimed backfill ended, for logs. `taken`: this process gives it back, and another one may claim it at once. `misconfigured`: the same,
 * because this process cannot do it: its address is wrong.
 */
export type BackfillEndTold = {
  readonly id: number;
  readonly state: 'done' | 'failed' | 'queued' | 'taken' | 'misconfigured';
  readonly message: string | null;
  readonly waitUntil: Instant | null;
  readonly requests: number;
  readonly stored: number;
};

/** A backfill that must wait longer is given back, so that others can run; it is claimed again after the wait. */
export const MOST_WAIT_MS = 60_000;
const LONGEST_MESSAGE = 1_000;
/**
 * What is asked about again within so long keeps a backfill open. Every claim that is not settled soon is asked about once a day in the end,
 * for some slots for ever: that is no reason to keep the others waiting, and a backfill that is over can be resumed.
 */
export const LONGEST_OPEN_MS = DAY / 2;
const SOONEST_AGAIN_MS = 1_000;
/** A backfill whose slots belong to others looks again when one of these ends, and this often in case nobody tells it. */
const OTHERS_LOOK_MS = 10 * MINUTE;
/** Why a backfill waits that has asked for everything: some answers were not the last word. */
export const NOT_FINAL_YET = 'not final yet';
/** The upstream refused the key while it ran. */
export const KEY_REFUSED = 'key refused';

type ClaimEnd = Pick<BackfillEndTold, 'state' | 'message' | 'waitUntil'> & {
  /** Requests that it would send if it were resumed; absent: unknown. */
  readonly leftRequests?: number;
};

/** Records how the run ended. `isKeyRefused`: if it was interrupted, it was because of that. Database errors reject. */
export async function endRun(
  deps: ClaimDeps,
  { id }: ClaimedBackfill,
  run: BackfillRun,
  isKeyRefused: boolean,
): Promise<BackfillEndTold> {
  const { requests, stored } = run.totals ?? run.seen;
  const end = claimEndOf(run, deps.clock.now(), isKeyRefused);
  await recordEnd(deps, id, end);
  const { state, message, waitUntil } = end;
  return { id, requests, stored, state, message, waitUntil };
}

/** As the exit code of a command: `done` means that nothing is left. What another answer mends soon goes back to the queue until then. */
function claimEndOf(run: BackfillRun, now: Instant, isKeyRefused: boolean): ClaimEnd {
  const { end } = run;
  if (end.kind === 'stopped') return { state: 'queued', message: end.reason, waitUntil: end.until };
  switch (verdictOf([run])) {
    case 'interrupted':
      return isKeyRefused ? untilAccepted(now) : { state: 'taken', message: null, waitUntil: null };
    case 'complete':
      return { state: 'done', message: null, waitUntil: null };
    case 'misconfigured':
      if (end.kind !== 'configurationError') return { state: 'failed', message: null, waitUntil: null };
      if (end.of === 'key') return untilAccepted(now);
      return { state: end.of === 'process' ? 'misconfigured' : 'failed', message: end.message, waitUntil: null };
    case 'work left': {
      if (run.hasOthers) {
        const waitUntil = Math.min(now + OTHERS_LOOK_MS, nextAskOf(run, now, Number.POSITIVE_INFINITY));
        return { state: 'queued', message: ANOTHER_BACKFILL, waitUntil };
      }
      const at = nextAskOf(run, now);
      if (at - now <= LONGEST_OPEN_MS) return { state: 'queued', message: NOT_FINAL_YET, waitUntil: at };
      return { state: 'failed', message: whatIsLeft(run), waitUntil: null };
    }
    case 'lacking':
      // What the upstream refuses, or says wrong to the last, is not requested again.
      return {
        ...{ state: 'failed', message: whatIsLeft(run), waitUntil: null },
        ...(end.kind === 'done' ? { leftRequests: run.failed.length } : {}),
      };
  }
}

/** Every session ends soon, and the next one begins when the upstream accepts the key: nobody claims the backfill meanwhile. */
function untilAccepted(now: Instant): ClaimEnd {
  return { state: 'queued', message: KEY_REFUSED, waitUntil: now + MOST_WAIT_MS };
}

/** When the first of the slots that a later run asks for is due; `unasked`: when those are that were never asked for. */
function nextAskOf({ left }: BackfillRun, now: Instant, unasked = now): Instant {
  const later = (left ?? []).filter(({ fate }) => fate === 'later');
  return Math.max(now + SOONEST_AGAIN_MS, Math.min(...later.map(({ nextAskAt }) => nextAskAt ?? unasked)));
}

/** The run rejected. `onUnwritten` gets the error if that cannot be recorded; the claim then expires by itself. */
export async function endBroken(
  deps: ClaimDeps,
  { id }: ClaimedBackfill,
  error: Error,
  onUnwritten: (error: unknown) => void,
): Promise<BackfillEndTold> {
  const end = brokenEndOf(error, deps.clock.now());
  await recordEnd(deps, id, end).catch(onUnwritten);
  return { id, requests: 0, stored: 0, ...end };
}

function brokenEndOf(error: Error, now: Instant): ClaimEnd {
  const { message } = error;
  if (error instanceof KeyRefused) return untilAccepted(now);
  if (error instanceof ConfigurationError) return { state: 'misconfigured', message, waitUntil: null };
  return { state: 'queued', message, waitUntil: now + MOST_WAIT_MS };
}

async function recordEnd({ sql, clock, owner }: ClaimDeps, id: number, end: ClaimEnd): Promise<void> {
  const { state, message, waitUntil } = end;
  const isOver = state === 'done' || state === 'failed';
  await endClaim(
    sql,
    { id, owner, now: clock.now() },
    isOver
      ? { state, leftRequests: state === 'done' ? 0 : (end.leftRequests ?? null), message }
      : // What is missing then, others fetch.
        { state: 'queued', waitUntil, leftRequests: message === ANOTHER_BACKFILL ? 0 : null, message },
  );
}

/** What a backfill could not fetch, and why. */
function whatIsLeft({ failed, refused, left }: BackfillRun): string {
  const slots = (left ?? [])
    .filter(({ fate }) => fate !== 'too young')
    .map(
      ({ reason, fate, slots }) => `${formatCounted(slots, 'slot')} ${reason}${fate === 'failed' ? ' (failed)' : ''}`,
    );
  const parts = [
    ...(slots.length === 0 ? [] : [`left: ${slots.join(', ')}`]),
    ...(failed.length === 0
      ? []
      : [`${formatCounted(failed.length, 'chunk')} could not be had (${failed[0]!.message})`]),
    ...[...refused].map(
      ([reason, { chunks, message }]) => `${formatCounted(chunks, 'chunk')} refused, ${reason}: ${message}`,
    ),
  ];
  return parts.join('; ').slice(0, LONGEST_MESSAGE);
}
