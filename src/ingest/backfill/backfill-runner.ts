/**
 * Works off the backfills that wait for a service: claims the most urgent one, runs it until it is done, has to wait, is paused,
 * or one of higher priority comes; and while there is none, helps other processes with the chunks of theirs. Where several processes
 * work off one each, all take from one queue, in which the chunks of the most urgent one go first: the others have what it leaves, as
 * when it waits for something or has fewer chunks than there are hands.
 *
 * Giving a backfill back costs nothing, for whoever claims it next plans what is still missing.
 */

import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../../clock.ts';
import { formatCounted } from '../../core/format.ts';
import { type Keep, keptPart } from '../../core/retention-settings.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type ClaimedBackfill, claimBackfill, endClaim, renewClaim } from '../../store/work/backfill-queue.ts';
import { withStepBack } from '../chunk/series-circuit-breaker.ts';
import { oneAtATime } from '../chunk/single-flight.ts';
import { Misconfigured, type Outcome } from '../outcome.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import type { ChunkQueue, ChunkWorker } from '../queue/chunk-queue.ts';
import { awayReason, createPatience } from '../request/outage-retry.ts';
import type { Session } from '../session.ts';
import { refreshForAbsences } from '../snapshot/coin-list.ts';
import { type BackfillRun, runBackfill } from './backfill.ts';
import { planBackfill } from './plan.ts';
import type { BackfillProgress } from './progress.ts';

export type BackfillEndTold = {
  readonly id: number;
  readonly state: 'done' | 'failed' | 'queued' | 'taken';
  readonly message: string | null;
  readonly waitUntil: Instant | null;
  readonly requests: number;
  readonly stored: number;
};

export type BackfillRunnerDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly queue: ChunkQueue;
  readonly session: Pick<Session, 'ask' | 'ingestChunk' | 'takeTurns' | 'limits' | 'plan' | 'walls'>;
  /** `host:pid`. */
  readonly owner: string;
  readonly concurrency: number;
  /** How long candles are kept: of a backfill that waits for long, what has become older meanwhile is not asked any more. */
  readonly keep?: Partial<Keep['candles']>;
  /** When a backfill, of which so many requests are left, will be done by what is known of the quota and of others; null: nobody can say. */
  readonly finishOf: (id: number, left: number) => Promise<Instant | null>;
  readonly onBegin: (claimed: ClaimedBackfill, requests: number) => void;
  readonly onEnd: (end: BackfillEndTold) => void;
  readonly onChunk: (job: ChunkJob, outcome: Outcome) => void;
  readonly onFailure: (job: ChunkJob, error: Error, final: boolean) => void;
  /** Something that it cannot do now, and will try again. */
  readonly onError: (error: Error) => void;
  readonly bringBack?: () => Promise<void>;
  readonly realMs?: (ms: number) => number;
  /** How often it looks for work, and whether its own is still wanted. */
  readonly lookMs?: number;
};

export type BackfillRunner = {
  start(): void;
  /** Resolves when what was in hand is stored or handed back. */
  stop(): Promise<void>;
  /** While `stop` still waits for what is in hand: others may have the backfill at once. */
  release(): Promise<void>;
  /** The one in hand. */
  current(): { readonly id: number; readonly progress: BackfillProgress | null } | null;
};

const LOOK_MS = 2_000;
/** A longer wait gives the place to another; this one is claimed again when it is over. */
const MOST_WAIT_MS = 60_000;
/** Other processes work off the chunks as well, and whoever keeps the window learns of theirs a little later: half of it is enough for seconds of ten workers. */
export const WINDOW = 1024;

export function createBackfillRunner(deps: BackfillRunnerDeps): BackfillRunner {
  const { sql, clock, queue, session, owner, lookMs = LOOK_MS } = deps;
  const realMs = deps.realMs ?? ((ms: number) => ms);
  const stop = new AbortController();
  // Every chunk that waits for its turn, or for a database that is away, listens; that is no leak.
  setMaxListeners(0, stop.signal);
  let running: Promise<void> | null = null;
  let current: { readonly id: number; progress: BackfillProgress | null } | null = null;

  return {
    start: () => {
      running ??= loop();
    },
    stop: async () => {
      stop.abort();
      await running;
    },
    release: async () => {
      if (current === null) return;
      const claim = { id: current.id, owner, now: clock.now() };
      await endClaim(sql, claim, { state: 'queued', waitUntil: null, message: null });
    },
    current: () => current,
  };

  async function loop(): Promise<void> {
    let helper: ChunkWorker | null = null;
    while (!stop.signal.aborted) {
      const claimed = await claimBackfill(sql, { owner, now: clock.now() }).catch(told);
      if (claimed === null) {
        helper ??= help();
        await clock.sleep(lookMs, stop.signal).catch(() => undefined);
        continue;
      }
      await helper?.close();
      helper = null;
      await work(claimed);
    }
    await helper?.close();
  }

  function told(error: unknown): null {
    if (!stop.signal.aborted) deps.onError(asError(error));
    return null;
  }

  /** Chunks of backfills that other processes keep in the queue. */
  function help(): ChunkWorker {
    const patience = createPatience({
      clock,
      signal: stop.signal,
      onAway: () => undefined,
      onBack: () => undefined,
    });
    const ingestChunk = oneAtATime(withStepBack(session.ingestChunk, clock));
    return queue.work({
      concurrency: deps.concurrency,
      onBatch: session.takeTurns,
      handle: (job, attempt) => ingestChunk(job, { attempt, signal: stop.signal, patience }),
      snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
      events: { onOutcome: deps.onChunk, onFailure: deps.onFailure },
    });
  }

  async function work(claimed: ClaimedBackfill): Promise<void> {
    const { id } = claimed;
    const mine = { progress: null as BackfillProgress | null, id };
    current = mine;
    const release = new AbortController();
    const signal = AbortSignal.any([stop.signal, release.signal]);
    // Until it is planned nobody knows better than what is written down.
    let left: number | null = null;
    const watching = watch(claimed, release, () => left);
    let end: BackfillEndTold;
    try {
      const onPlanned = (requests: number) => {
        left = requests;
      };
      const run = await execute(claimed, signal, onPlanned, (progress) => {
        mine.progress = progress;
        left = Math.max(0, progress.chunksPlanned - progress.chunksDone);
      });
      end = await ended(claimed, run);
    } catch (error) {
      end = await broken(claimed, asError(error));
    } finally {
      release.abort();
      await watching;
      current = null;
    }
    deps.onEnd(end);
  }

  async function execute(
    claimed: ClaimedBackfill,
    signal: AbortSignal,
    onPlanned: (requests: number) => void,
    onProgress: (progress: BackfillProgress) => void,
  ): Promise<BackfillRun> {
    const { id, coinIds, interval, quote, span, priority } = claimed;
    const { walls, plan, ask } = session;
    await walls.reload();
    const list = await refreshForAbsences({ ask, sql, clock, signal });
    if (list.kind === 'failed') deps.onError(new Error(`${list.message}; what was empty stays unconfirmed`));
    const startedAt = clock.now();
    const target = { coinIds, interval, quote, span: keptPart(span, interval, deps.keep ?? {}, startedAt) };
    const wall = walls.of(interval);
    const planned = await planBackfill({ sql, target, now: startedAt, askedSince: startedAt, plan, wall });
    onPlanned(planned.cost.requests);
    deps.onBegin(claimed, planned.cost.requests);
    return runBackfill(
      {
        sql,
        clock,
        queue,
        ingestChunk: async (job, options) => {
          const outcome = await session.ingestChunk(job, options).catch((error: unknown) => {
            deps.onFailure(job, asError(error), false);
            throw error;
          });
          deps.onChunk(job, outcome);
          return outcome;
        },
        takeTurns: session.takeTurns,
        walls,
        plan,
        perSecond: session.limits.perSecond,
        owner,
        ...(deps.bringBack ? { bringBack: deps.bringBack } : {}),
        realMs,
      },
      {
        claimedId: id,
        priority,
        target,
        spec: {},
        planned,
        startedAt,
        concurrency: deps.concurrency,
        window: WINDOW,
        maxWaitMs: MOST_WAIT_MS,
        signal,
        onProgress,
      },
    );
  }

  /**
   * Gives signs of life, and gives the backfill up when it was paused or cancelled, or a more urgent one waits; or when it has another
   * priority now, for its chunks stand in the queue by the one that it had.
   */
  async function watch(claimed: ClaimedBackfill, release: AbortController, left: () => number | null): Promise<void> {
    const { id } = claimed;
    while (!release.signal.aborted) {
      try {
        const leftRequests = left();
        const known = leftRequests === null ? null : { leftRequests, finishAt: await forecast(id, leftRequests) };
        const claim = await renewClaim(sql, { id, owner, now: clock.now(), known });
        if (!claim.isMine || claim.isPreempted || claim.priority !== claimed.priority) return release.abort();
      } catch (error) {
        // The run itself waits for a database that is away.
        if (awayReason(error) === null) deps.onError(asError(error));
      }
      await clock.sleep(lookMs, release.signal).catch(() => undefined);
    }
  }

  /** One that cannot be made must not look like a process that was killed. */
  function forecast(id: number, left: number): Promise<Instant | null> {
    return deps.finishOf(id, left).catch((error: unknown) => {
      if (awayReason(error) === null) deps.onError(asError(error));
      return null;
    });
  }

  async function ended({ id }: ClaimedBackfill, run: BackfillRun): Promise<BackfillEndTold> {
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

  async function broken({ id }: ClaimedBackfill, error: Error): Promise<BackfillEndTold> {
    const claim = { id, owner, now: clock.now() };
    const told = { id, requests: 0, stored: 0, message: error.message };
    const isHopeless = error instanceof Misconfigured;
    const waitUntil = isHopeless ? null : clock.now() + MOST_WAIT_MS;
    if (!stop.signal.aborted) deps.onError(error);
    await endClaim(
      sql,
      claim,
      isHopeless
        ? { state: 'failed', leftRequests: null, message: error.message }
        : { state: 'queued', waitUntil, message: error.message },
    ).catch((again: unknown) => {
      // Its claim runs out by itself when the database is away.
      if (awayReason(again) === null) deps.onError(asError(again));
    });
    return { ...told, state: isHopeless ? 'failed' : 'queued', waitUntil };
  }
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
  return parts.length === 0 ? null : parts.join('; ').slice(0, 1_000);
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
