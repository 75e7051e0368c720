/**
 * Runs the backfills of the service. It claims the most urgent one and runs it until it is done, must wait, is paused, or a more urgent one comes.
 * While there is no backfill to claim, it works on the chunks of other processes. All processes take chunks from one queue, in which the chunks of
 * the most urgent backfill come first; the other backfills get the workers that are left.
 *
 * A backfill may be given back at any time: the process that claims it next plans what is still missing. A process whose address is wrong
 * claims none for a while, or it would end those that others can do.
 */
import { setMaxListeners } from 'node:events';
import { asError } from '../../core/as-error.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { HOUR, MINUTE } from '../../core/interval.ts';
import { keptPart, type Retention } from '../../core/settings/retention-settings.ts';
import { type ClaimedBackfill, claimBackfill, endClaim, renewClaim } from '../../store/backfill/backfill-queue.ts';
import { wakeWaitingBackfills } from '../../store/backfill/slot-owner.ts';
import { type BackfillOptions, type BackfillRun, runBackfill } from '../backfill/backfill.ts';
import { planBackfill } from '../backfill/plan.ts';
import type { BackfillProgress } from '../backfill/progress.ts';
import { recountWaiting } from '../backfill/recount.ts';
import type { RunState } from '../backfill/run-chunks.ts';
import type { IngestChunk } from '../chunk/ingest-chunk.ts';
import { ConfigurationError, type Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import type { ChunkWorker } from '../queue/chunk-worker.ts';
import { createOutageRetry, outageReason } from '../request/outage-retry.ts';
import type { Session } from '../session.ts';
import { refreshForAbsences } from '../snapshot/coin-list.ts';
import {
  type BackfillEndReport,
  type ClaimDeps,
  endBroken,
  endRun,
  KEY_REFUSED,
  MOST_WAIT_MS,
  watchClaim,
} from './claim.ts';

export type BackfillRunnerDeps = ClaimDeps & {
  readonly queue: ChunkQueue;
  readonly session: Pick<
    Session,
    'sendRequest' | 'ingestChunk' | 'circuitBreaker' | 'plan' | 'limits' | 'historyLimits'
  >;
  readonly concurrency: number;
  /** How long candles are kept. Candles that became too old while the backfill waited are not requested. */
  readonly keep?: Partial<Retention['candles']>;
  readonly onBegin: (claimed: ClaimedBackfill, requests: number) => void;
  readonly onEnd: (end: BackfillEndReport) => void;
  readonly onChunk: (job: ChunkJob, outcome: Outcome) => void;
  readonly onFailure: (job: ChunkJob, error: Error, final: boolean) => void;
  readonly realMs?: (ms: number) => number;
  /** How often the runner looks for a backfill to claim, and renews its claim. In milliseconds. */
  readonly lookMs?: number;
};

export type BackfillRunner = {
  start(): void;
  /** Resolves when the chunks in progress are stored or given back. `isKeyRefused`: the backfill waits until the upstream accepts the key. */
  stop(why?: { readonly isKeyRefused?: boolean }): Promise<void>;
  /** Gives the backfill back while `stop` still waits for chunks in progress: another process may claim it at once. */
  release(): Promise<void>;
  /** The claimed backfill. */
  current(): { readonly id: number; readonly progress: BackfillProgress | null } | null;
};

/** More often than the lease needs, so that each renewal soon notices a pause or a more urgent backfill. */
const LOOK_MS = 2_000;
/**
 * The window where no rate limits the plan. It is large, because other processes work on these chunks as well, and this process notices up to two
 * seconds later that they are done.
 */
const LARGEST_WINDOW = 1024;
/** A window lasts so long at the plan's rate. Half of it outlasts the time between two looks, and backfills that take turns wait only briefly. */
const WINDOW_SECONDS = 6;
/** At least so many chunks for each worker, so that no worker waits while the window is filled again. */
const WINDOW_PER_WORKER = 4;

/** The wait of a process with a wrong address, the same as for a refused key: each try may cost a request of the quota. */
const misconfiguredBackoff = createBackoff({ firstMs: MINUTE, mostMs: 6 * HOUR, factor: 4 });

/** The most chunks of one backfill in the queue. Backfills of equal priority take turns in blocks of this size. */
export function windowOf(perSecond: number | null, concurrency: number): number {
  if (perSecond === null) return LARGEST_WINDOW;
  return Math.min(LARGEST_WINDOW, Math.max(concurrency * WINDOW_PER_WORKER, Math.ceil(perSecond * WINDOW_SECONDS)));
}

export function createBackfillRunner(deps: BackfillRunnerDeps): BackfillRunner {
  const { sql, clock, owner, lookMs = LOOK_MS } = deps;
  const stop = new AbortController();
  // Every chunk that waits for a permit, or for an unavailable database, listens to the signal: these many listeners are no leak.
  setMaxListeners(0, stop.signal);
  let isKeyRefused = false;
  let running: Promise<void> | null = null;
  let current: { readonly id: number; progress: BackfillProgress | null } | null = null;

  /** How often in a row it could do nothing, because its address is wrong, and until when it tries nothing. */
  let misconfigured = { times: 0, until: Number.NEGATIVE_INFINITY };
  const noteMisconfigured = () => {
    const { times, until } = misconfigured;
    // Of several workers that meet it at the same time, the first one counts.
    if (clock.now() < until) return;
    misconfigured = { times: times + 1, until: clock.now() + misconfiguredBackoff(times, WHOLE_BOUND) };
  };

  async function loop(): Promise<void> {
    let helper: ChunkWorker | null = null;
    const closeHelper = async () => {
      await helper?.close();
      helper = null;
    };
    // A session begins only after the upstream has accepted the key.
    await wakeWaitingBackfills(sql, KEY_REFUSED).catch((error: unknown) => deps.onError(asError(error)));
    while (!stop.signal.aborted) {
      if (clock.now() < misconfigured.until) {
        await closeHelper();
        await clock.sleep(lookMs, stop.signal).catch(() => undefined);
        continue;
      }
      const claimed = await claimBackfill(sql, { owner, now: clock.now() }).catch((error: unknown) => {
        if (!stop.signal.aborted) deps.onError(asError(error));
        return null;
      });
      if (claimed === null) {
        helper ??= help(deps, stop.signal, noteMisconfigured);
        await clock.sleep(lookMs, stop.signal).catch(() => undefined);
        continue;
      }
      await closeHelper();
      const end = await work(claimed);
      if (end.state === 'misconfigured') noteMisconfigured();
      else misconfigured = { ...misconfigured, times: 0 };
      deps.onEnd(end);
    }
    await closeHelper();
  }

  async function work(claimed: ClaimedBackfill): Promise<BackfillEndReport> {
    const mine = { progress: null as BackfillProgress | null, id: claimed.id };
    current = mine;
    const release = new AbortController();
    let readState: () => Promise<RunState | null> = async () => null;
    const watching = watchClaim({ ...deps, lookMs }, claimed, release, () => readState());
    try {
      const run = await execute(deps, claimed, {
        signal: AbortSignal.any([stop.signal, release.signal]),
        onBegun: (read) => {
          readState = read;
        },
        onProgress: (progress) => {
          mine.progress = progress;
        },
      });
      // A run that was shorter than a heartbeat has not recorded its progress yet. One whose slots others request has made none.
      const state = run.leftSlotsToOthers ? null : await readState();
      const known = state === null ? null : { ...state, finish: null };
      await renewClaim(sql, { id: claimed.id, owner, now: clock.now(), claimedAt: claimed.claimedAt, known });
      const end = await endRun(deps, claimed, run, isKeyRefused);
      if (end.state === 'taken' && !stop.signal.aborted) await recount(claimed.id);
      return end;
    } catch (cause) {
      const error = asError(cause);
      if (!stop.signal.aborted) deps.onError(error);
      return await endBroken(deps, claimed, error, (unwritten) => {
        if (outageReason(unwritten) === null) deps.onError(asError(unwritten));
      });
    } finally {
      release.abort();
      await watching;
      current = null;
    }
  }

  /** A more urgent backfill has come, and may have taken over some of this backfill's slots. */
  async function recount(id: number): Promise<void> {
    const { plan, historyLimits } = deps.session;
    const planning = { sql, now: clock.now(), plan, historyLimits, ...(deps.keep ? { keep: deps.keep } : {}) };
    await recountWaiting(planning, id).catch((error: unknown) => {
      if (outageReason(error) === null) deps.onError(asError(error));
    });
  }

  return {
    start: () => {
      running ??= loop();
    },
    stop: async (why = {}) => {
      isKeyRefused = why.isKeyRefused ?? false;
      stop.abort();
      await running;
    },
    release: async () => {
      if (current === null) return;
      const claim = { id: current.id, owner, now: clock.now() };
      await endClaim(sql, claim, { state: 'queued', waitUntil: null, leftRequests: null, message: null });
    },
    current: () => current,
  };
}

/** Works on the chunks that other processes put into the queue. */
function help(deps: BackfillRunnerDeps, signal: AbortSignal, onMisconfigured: () => void): ChunkWorker {
  const { clock, realMs = (ms) => ms } = deps;
  const retry = createOutageRetry({ clock, signal });
  const ingestChunk = deps.session.circuitBreaker(deps.session.ingestChunk);
  return deps.queue.work({
    concurrency: deps.concurrency,
    handle: (job, attempt) => ingestChunk(job, { attempt, signal, retry }),
    snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
    now: () => clock.now(),
    events: {
      onOutcome: deps.onChunk,
      onFailure: (job, error, final) => {
        if (error instanceof ConfigurationError) onMisconfigured();
        deps.onFailure(job, error, final);
      },
    },
  });
}

/** Plans what is still missing of a claimed backfill, and fetches it. */
async function execute(
  deps: BackfillRunnerDeps,
  claimed: ClaimedBackfill,
  {
    signal,
    onBegun,
    onProgress,
  }: Pick<BackfillOptions, 'signal' | 'onProgress'> & Required<Pick<BackfillOptions, 'onBegun'>>,
): Promise<BackfillRun> {
  const { sql, clock, queue, owner, concurrency, realMs } = deps;
  const { id, coinIds, interval, quote, span, priority } = claimed;
  const { historyLimits, circuitBreaker, plan, sendRequest } = deps.session;
  await historyLimits.reload();
  const retry = createOutageRetry({ clock, signal });
  const list = await refreshForAbsences({ sendRequest, sql, clock, signal, retry });
  if (list.kind === 'failed') deps.onError(new Error(`${list.message}; empty slots remain unconfirmed`));
  const startedAt = clock.now();
  const target = { coinIds, interval, quote, span: keptPart(span, interval, deps.keep ?? {}, startedAt) };
  const historyLimit = historyLimits.of(interval);
  const place = { id, priority };
  const planned = await planBackfill({
    sql,
    target,
    now: startedAt,
    requestedSince: startedAt,
    plan,
    historyLimit,
    place,
  });
  deps.onBegin(claimed, planned.cost.requests);
  const running = { sql, clock, queue, historyLimits, circuitBreaker, plan, owner, ingestChunk: reporting(deps) };
  return runBackfill(
    { ...running, ...(realMs ? { realMs } : {}) },
    {
      claimedId: id,
      priority,
      target,
      spec: {},
      planned,
      startedAt,
      concurrency,
      window: windowOf(deps.session.limits.perSecond, concurrency),
      maxWaitMs: MOST_WAIT_MS,
      signal,
      onBegun,
      onProgress,
    },
  );
}

/** Reports how each chunk ended. */
function reporting({ session, onChunk, onFailure }: BackfillRunnerDeps): IngestChunk {
  return async (job, options) => {
    const outcome = await session.ingestChunk(job, options).catch((error: unknown) => {
      onFailure(job, asError(error), false);
      throw error;
    });
    onChunk(job, outcome);
    return outcome;
  };
}
