/** The claim of a service on a backfill. The service renews it while the backfill runs, and ends it as done, failed, or given back to the queue. */
import type { Clock, Instant } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { formatCounted } from '../../core/format.ts';
import { DAY, MINUTE } from '../../core/interval.ts';
import type { BackfillFinish } from '../../store/backfill/backfill-finish.ts';
import { type ClaimedBackfill, endClaim, renewClaim } from '../../store/backfill/backfill-queue.ts';
import { ANOTHER_BACKFILL, NOT_FINAL_YET } from '../../store/backfill/slot-owner.ts';
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
  /** Forecasts when the backfill will be done. Null: there is nothing new, and the recorded forecast stays. */
  readonly finishOf: (id: number, state: RunState) => Promise<BackfillFinish | null>;
  /** Called with an error after which the service retries. */
  readonly onError: (error: Error) => void;
};

/**
 * Renews the claim until `release` is aborted. It aborts `release` itself when the backfill was paused or cancelled, when a more urgent one waits, or
 * when the priority has changed (the chunks in the queue have the old one). `readState` resolves to null until the run is planned.
 */
export async function watchClaim(
  { sql, clock, owner, finishOf, onError, lookMs }: ClaimDeps & { readonly lookMs: number },
  { id, priority, claimedAt }: ClaimedBackfill,
  release: AbortController,
  readState: () => Promise<RunState | null>,
): Promise<void> {
  // An outage is not reported here: the run itself waits for an unavailable database.
  const report = (error: unknown) => {
    if (outageReason(error) === null) onError(asError(error));
    return null;
  };
  while (!release.signal.aborted) {
    try {
      const state = await readState();
      // A run with nothing left ends now. If others request its slots, that is no progress.
      const isNews = state !== null && state.leftRequests > 0;
      // Even without a new forecast the claim must be renewed, or the process would look dead.
      const known = isNews ? { ...state, finish: await finishOf(id, state).catch(report) } : null;
      const claim = await renewClaim(sql, { id, owner, now: clock.now(), claimedAt, known });
      if (!claim.isMine || claim.isPreempted || claim.priority !== priority) return release.abort();
    } catch (error) {
      report(error);
    }
    await clock.sleep(lookMs, release.signal).catch(() => undefined);
  }
}

/**
 * How a claimed backfill ended, for logs. `taken`: this process gives it back, and another may claim it at once. `misconfigured`: the same, because
 * the upstream address of this process is wrong.
 */
export type BackfillEndReport = {
  readonly id: number;
  readonly state: 'done' | 'failed' | 'queued' | 'taken' | 'misconfigured';
  readonly message: string | null;
  readonly waitUntil: Instant | null;
  readonly requests: number;
  readonly stored: number;
};

/** A backfill that must wait longer is given back, so that others can run. A service claims it again after the wait. */
export const MOST_WAIT_MS = 60_000;
const LONGEST_MESSAGE = 1_000;
/**
 * A backfill stays open if its next request is due within this time. In the end every claim that is not settled soon is requested once a day, for
 * some slots for ever. Such a backfill must not keep the others waiting, and an ended backfill can be resumed.
 */
export const LONGEST_OPEN_MS = DAY / 2;
const SOONEST_AGAIN_MS = 1_000;
/** A backfill whose slots belong to others looks again when one of these ends, and this often in case nothing wakes it. */
const OTHERS_LOOK_MS = 10 * MINUTE;
/** The upstream refused the key during the run. */
export const KEY_REFUSED = 'key refused';

type ClaimEnd = Pick<BackfillEndReport, 'state' | 'message' | 'waitUntil'> & {
  /** Requests that the backfill would send if it were resumed; absent: unknown. */
  readonly leftRequests?: number;
};

/** Records how the run ended. `isKeyRefused`: the reason, if the run was interrupted. Rejects with database errors. */
export async function endRun(
  deps: ClaimDeps,
  { id }: ClaimedBackfill,
  run: BackfillRun,
  isKeyRefused: boolean,
): Promise<BackfillEndReport> {
  const { requests, stored } = run.totals ?? run.seen;
  const end = claimEndOf(run, deps.clock.now(), isKeyRefused);
  await recordEnd(deps, id, end);
  const { state, message, waitUntil } = end;
  return { id, requests, stored, state, message, waitUntil };
}

/**
 * The same rules as for the exit code of a command: `done` means that nothing is left. A backfill whose next answer is due soon goes back to the
 * queue until then.
 */
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
      if (end.about === 'key') return untilAccepted(now);
      return { state: end.about === 'process' ? 'misconfigured' : 'failed', message: end.message, waitUntil: null };
    case 'work left': {
      if (run.leftSlotsToOthers) {
        const waitUntil = Math.min(now + OTHERS_LOOK_MS, nextRequestAt(run, now, Number.POSITIVE_INFINITY));
        return { state: 'queued', message: ANOTHER_BACKFILL, waitUntil };
      }
      const at = nextRequestAt(run, now);
      if (at - now <= LONGEST_OPEN_MS) return { state: 'queued', message: NOT_FINAL_YET, waitUntil: at };
      return { state: 'failed', message: whatIsLeft(run), waitUntil: null };
    }
    case 'lacking':
      // The upstream refuses these slots, or its answers about them stayed wrong: they are not requested again.
      return {
        ...{ state: 'failed', message: whatIsLeft(run), waitUntil: null },
        ...(end.kind === 'done' ? { leftRequests: run.failed.length } : {}),
      };
  }
}

/** Every session ends soon, and the next one begins when the upstream accepts the key. No process claims the backfill meanwhile. */
function untilAccepted(now: Instant): ClaimEnd {
  return { state: 'queued', message: KEY_REFUSED, waitUntil: now + MOST_WAIT_MS };
}

/** When the first slot of a later run is due. `unasked`: when slots are due that were never requested. */
function nextRequestAt({ left }: BackfillRun, now: Instant, unasked = now): Instant {
  const later = (left ?? []).filter(({ fate }) => fate === 'later');
  return Math.max(now + SOONEST_AGAIN_MS, Math.min(...later.map(({ nextAskAt }) => nextAskAt ?? unasked)));
}

/** Records that the run rejected. If it cannot be recorded, `onUnwritten` gets the error, and the claim expires. */
export async function endBroken(
  deps: ClaimDeps,
  { id }: ClaimedBackfill,
  error: Error,
  onUnwritten: (error: unknown) => void,
): Promise<BackfillEndReport> {
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
      : // Other backfills fetch what is missing.
        { state: 'queued', waitUntil, leftRequests: message === ANOTHER_BACKFILL ? 0 : null, message },
  );
}

/** Describes what a backfill could not fetch, and why. */
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
      : [`${formatCounted(failed.length, 'chunk')} could not be fetched (${failed[0]!.message})`]),
    ...[...refused].map(
      ([reason, { chunks, message }]) => `${formatCounted(chunks, 'chunk')} refused, ${reason}: ${message}`,
    ),
  ];
  return parts.join('; ').slice(0, LONGEST_MESSAGE);
}
