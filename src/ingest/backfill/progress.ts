/** How a backfill goes: what has been done so far, what it waits for, and when that is reason to end. */
import type { Instant } from '../../clock.ts';
import type { Span } from '../../core/span.ts';
import type { RefusalReason } from '../../store/candle/refusal.ts';
import type { BackfillTotals } from '../../store/work/backfill.ts';
import { ASK_AGAIN_MS } from '../answer/second-opinion.ts';
import { INTERRUPTED, type Outcome } from '../outcome.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { DATABASE_IS_UNAVAILABLE, type OutageReason } from '../request/outage-retry.ts';
import type { BackfillPlan } from './plan.ts';

export type BackfillProgress = {
  readonly chunksDone: number;
  readonly chunksPlanned: number;
  readonly stored: number;
  readonly requests: number;
  /** Set while everything waits: for the quota, for upstream to come back. */
  readonly waiting: { readonly until: Instant; readonly reason: string } | null;
};

export type BackfillEnd =
  /** Nothing worth a request is left. */
  | { readonly kind: 'done' }
  /** The wait would have been longer than allowed; run it again, nothing is lost. */
  | { readonly kind: 'stopped'; readonly until: Instant; readonly reason: string }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'misconfigured'; readonly message: string };

export type BackfillSeen = {
  readonly requests: number;
  readonly stored: number;
  readonly revised: number;
  readonly setAside: number;
};

/** So many refusals of single series in a row, with nothing stored between, are not about the series. */
const MOST_REFUSALS_IN_A_ROW = 10;

/** As long as it takes to ask about one chunk four times, each time when no cache repeats the answer. */
const LONGEST_DOUBT_MS = 5 * ASK_AGAIN_MS;

export type Tally = ReturnType<typeof createTally>;

/** Counts outcomes, tells the progress, and ends the run when it would wait too long or is refused everything. */
export function createTally(
  {
    backfillId,
    planned,
    maxWaitMs,
    onProgress,
  }: {
    /** Whose requests are counted: processes work each other's chunks, and a request is theirs who wanted the chunk. */
    readonly backfillId: number;
    readonly planned: BackfillPlan;
    /** Longer waits than this end the run. */
    readonly maxWaitMs: number;
    readonly onProgress: (progress: BackfillProgress) => void;
  },
  stopWith: (how: BackfillEnd) => void,
) {
  const isOurs = (job: ChunkJob) => job.kind === 'backfill' && job.backfillId === backfillId;
  const refused = new Map<RefusalReason, { chunks: number; message: string }>();
  const failed: { coinId: string; span: Span; message: string }[] = [];
  let progress: BackfillProgress = {
    chunksDone: 0,
    chunksPlanned: planned.cost.requests,
    stored: 0,
    requests: 0,
    waiting: null,
  };
  let [revised, setAside] = [0, 0];
  const refusedInARow = new Set<number>();
  let waitingSince: Instant | null = null;
  const away = new Map<OutageReason, Instant>();
  /** By chunk: those that alone wait, and until when. */
  const deferred = new Map<string, { readonly until: Instant; readonly reason: string }>();
  const tell = (change: Partial<BackfillProgress>) => {
    progress = { ...progress, ...change };
    // Nothing else is left: the run waits for these.
    if (
      progress.waiting === null &&
      deferred.size > 0 &&
      progress.chunksDone + deferred.size >= progress.chunksPlanned
    ) {
      const soonest = [...deferred.values()].reduce((a, b) => (b.until < a.until ? b : a));
      progress = { ...progress, waiting: soonest };
    }
    // What is in hand may end meanwhile: that does not bring back what is away.
    for (const [reason, until] of away) progress = { ...progress, waiting: { until, reason } };
    onProgress({ ...progress, chunksPlanned: Math.max(progress.chunksPlanned, progress.chunksDone) });
  };
  /** Waits with no answer between them are one wait: an outage is many short ones. */
  const waits = (until: Instant, reason: string, now: Instant, mostMs = maxWaitMs) => {
    waitingSince ??= now;
    if (until - waitingSince <= mostMs) return;
    stopWith({ kind: 'stopped', until, reason });
  };
  tell({});
  return {
    refused,
    failed,
    seen: (): BackfillSeen => ({ requests: progress.requests, stored: progress.stored, revised, setAside }),
    /** As it was in the end, with what other processes did for it. */
    settle: ({ requests, stored }: BackfillTotals) => {
      // The database has just told it; whether the queue is back, nobody asks any more.
      away.delete(DATABASE_IS_UNAVAILABLE);
      tell({ requests, stored, waiting: null });
    },
    away: (reason: OutageReason, until: Instant, now: Instant) => {
      away.set(reason, until);
      tell({});
      waits(until, reason, now);
    },
    back: (reason: OutageReason) => {
      away.delete(reason);
      tell({ waiting: null });
    },
    count: (job: ChunkJob, outcome: Outcome, now: Instant) => {
      if (outcome.kind !== 'deferred') deferred.delete(chunkJobId(job));
      switch (outcome.kind) {
        case 'stored':
          if (outcome.requests > 0) {
            refusedInARow.clear();
            waitingSince = null;
          }
          if (!isOurs(job)) return tell({ chunksDone: progress.chunksDone + 1, waiting: null });
          revised += outcome.revised;
          setAside += outcome.setAside;
          return tell({
            chunksDone: progress.chunksDone + 1,
            stored: progress.stored + outcome.stored,
            requests: progress.requests + outcome.requests,
            waiting: null,
          });
        case 'snoozed':
          if (outcome.reason === INTERRUPTED) return;
          tell({ waiting: { until: outcome.until, reason: outcome.reason } });
          return waits(outcome.until, outcome.reason, now);
        case 'deferred':
          deferred.set(chunkJobId(job), { until: outcome.until, reason: outcome.reason });
          tell({ requests: progress.requests + (isOurs(job) ? outcome.requests : 0), waiting: null });
          // The others go on meanwhile; it is a wait of the run only as long as none of them is answered. A doubt is sat out however
          // short a wait was allowed: the next run would begin with the same doubt, and never get past it.
          return outcome.reason === 'second opinion'
            ? waits(now, 'second opinion', now, Math.max(maxWaitMs, LONGEST_DOUBT_MS))
            : waits(now, 'unavailable', now);
        case 'refused': {
          waitingSince = null;
          const before = refused.get(outcome.reason);
          refused.set(outcome.reason, { chunks: (before?.chunks ?? 0) + 1, message: outcome.message });
          const requests = progress.requests + (isOurs(job) ? 1 : 0);
          tell({ chunksDone: progress.chunksDone + 1, requests, waiting: null });
          if (outcome.reason === 'plan wall' || outcome.reason === 'interval') return;
          refusedInARow.add(job.seriesId);
          if (refusedInARow.size < MOST_REFUSALS_IN_A_ROW) return;
          const message = `the upstream refused ${refusedInARow.size} series in a row (${outcome.reason}: ${outcome.message}); check CHANDLER_API_KEY and CHANDLER_BASE_URL, or run it again for the others`;
          return stopWith({ kind: 'misconfigured', message });
        }
      }
    },
    /** Another process has ended it. */
    gone: () => tell({ chunksDone: progress.chunksDone + 1 }),
    /** An attempt has failed, and will be made again. */
    trouble: (now: Instant) => waits(now, 'unavailable', now),
    fail: (job: ChunkJob, error: Error) => {
      deferred.delete(chunkJobId(job));
      failed.push({ coinId: job.coinId, span: { from: job.from, to: job.to }, message: error.message });
      tell({ chunksDone: progress.chunksDone + 1 });
    },
  };
}
