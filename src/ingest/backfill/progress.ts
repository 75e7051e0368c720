/** The progress of a backfill: what is done, what it waits for, and whether the wait must end the run. */
import type { Instant } from '../../clock.ts';
import { REQUEST_AGAIN_MS } from '../../core/second-opinion.ts';
import type { Span } from '../../core/span.ts';
import type { BackfillTotals } from '../../store/backfill/backfill.ts';
import type { RefusalReason } from '../../store/candle/refusal.ts';
import { type ConfigurationError, INTERRUPTED, KeyRefused, type Outcome } from '../outcome.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { DATABASE_OUTAGES, type OutageReason } from '../request/outage-retry.ts';
import type { BackfillPlan } from './plan.ts';

export type BackfillProgress = {
  readonly chunksDone: number;
  readonly chunksPlanned: number;
  readonly stored: number;
  readonly requests: number;
  /** Set while everything waits for the quota, or for the end of an outage. */
  readonly waiting: { readonly until: Instant; readonly reason: string } | null;
};

export type BackfillEnd =
  /** Nothing is left to fetch. */
  | { readonly kind: 'done' }
  /** The wait would be longer than allowed. Nothing is lost: run the command again. */
  | { readonly kind: 'stopped'; readonly until: Instant; readonly reason: string }
  | { readonly kind: 'interrupted' }
  /** `about`: what may be wrong. The upstream may accept a key again later. A wrong setting of the process must be changed. Else the series may be wrong. */
  | { readonly kind: 'configurationError'; readonly message: string; readonly about: 'key' | 'process' | 'series' };

export function endOf(error: ConfigurationError): BackfillEnd {
  return { kind: 'configurationError', message: error.message, about: error instanceof KeyRefused ? 'key' : 'process' };
}

export type BackfillSeen = {
  readonly requests: number;
  readonly stored: number;
  readonly revised: number;
  readonly quarantined: number;
};

/** Why a run waits: another process has begun its last chunks. */
export const ANOTHER_PROCESS = 'another process';

/** After this many refused series in a row, with nothing stored between them, the cause is not the series. */
const MOST_REFUSALS_IN_A_ROW = 10;

/** Long enough to request one chunk four times, each time after the caches have dropped the answer. */
const LONGEST_DOUBT_MS = 5 * REQUEST_AGAIN_MS;

type Wait = { readonly until: Instant; readonly reason: string };

type ProgressOptions = {
  /** Processes work on each other's chunks. A request counts for the backfill that the chunk belongs to. */
  readonly backfillId: number;
  readonly planned: BackfillPlan;
  /** A longer wait ends the run. */
  readonly maxWaitMs: number;
  readonly onProgress: (progress: BackfillProgress) => void;
};

/** Counts outcomes, reports the progress, and ends the run when the run would wait too long or the upstream refuses everything. */
export class ProgressTracker {
  /** Refused chunks by reason, with one of the messages. */
  readonly refused = new Map<RefusalReason, { chunks: number; message: string }>();
  /** Chunks that failed in all attempts. */
  readonly failed: { coinId: string; span: Span; message: string }[] = [];
  readonly #options: ProgressOptions;
  readonly #waits: ReturnType<typeof createWaitWatch>;
  readonly #refusals: ReturnType<typeof createRefusalWatch>;
  readonly #outages = new Map<OutageReason, Instant>();
  /** Chunks that wait while others continue, by id. */
  readonly #deferred = new Map<string, Wait>();
  #progress: BackfillProgress;
  #revised = 0;
  #quarantined = 0;

  constructor(options: ProgressOptions, stopWith: (how: BackfillEnd) => void) {
    this.#options = options;
    this.#waits = createWaitWatch(options.maxWaitMs, stopWith);
    this.#refusals = createRefusalWatch(stopWith);
    const chunksPlanned = options.planned.cost.requests;
    this.#progress = { chunksDone: 0, chunksPlanned, stored: 0, requests: 0, waiting: null };
    this.#report({});
  }

  seen(): BackfillSeen {
    const { requests, stored } = this.#progress;
    return { requests, stored, revised: this.#revised, quarantined: this.#quarantined };
  }

  /** Requests that are still to be sent, as far as is known. */
  left(): number {
    return Math.max(0, this.#progress.chunksPlanned - this.#progress.chunksDone);
  }

  /** There is more to fetch than was planned. Called before any unplanned chunk counts as done. */
  planMore(chunksPlanned: number): void {
    this.#report({ chunksPlanned: Math.max(this.#progress.chunksPlanned, chunksPlanned) });
  }

  /** Reports the totals at the end, including requests that other processes sent for this backfill. */
  settle({ requests, stored }: BackfillTotals): void {
    // The database has just answered. Whether the queue has recovered no longer matters.
    for (const reason of DATABASE_OUTAGES) this.#outages.delete(reason);
    this.#report({ requests, stored, waiting: null });
  }

  outageBegan(reason: OutageReason, until: Instant, now: Instant): void {
    this.#outages.set(reason, until);
    this.#report({});
    this.#waits.add(until, reason, now);
  }

  outageEnded(reason: OutageReason): void {
    this.#outages.delete(reason);
    this.#report({ waiting: null });
  }

  count(job: ChunkJob, outcome: Outcome, now: Instant): void {
    const isOurs = job.kind === 'backfill' && job.backfillId === this.#options.backfillId;
    if (outcome.kind !== 'deferred') this.#deferred.delete(chunkJobId(job));
    switch (outcome.kind) {
      case 'stored':
        if (outcome.requests > 0) {
          this.#refusals.answered();
          this.#waits.answered();
        }
        this.#revised += isOurs ? outcome.revised : 0;
        this.#quarantined += isOurs ? outcome.quarantined : 0;
        this.#oneDone(isOurs ? outcome : { requests: 0, stored: 0 });
        break;
      case 'snoozed': {
        const { until, reason } = outcome;
        if (reason === INTERRUPTED) return;
        this.#report({ waiting: { until, reason } });
        this.#waits.add(until, reason, now);
        break;
      }
      case 'deferred':
        this.#deferred.set(chunkJobId(job), { until: outcome.until, reason: outcome.reason });
        this.#report({ requests: this.#progress.requests + (isOurs ? outcome.requests : 0), waiting: null });
        // Other chunks continue meanwhile. The run waits only while none of them is answered.
        if (outcome.reason === 'second opinion') {
          // This wait is allowed even if the configured wait is shorter: the next run would begin with the same request, and never get past it.
          this.#waits.add(now, outcome.reason, now, Math.max(this.#options.maxWaitMs, LONGEST_DOUBT_MS));
        } else if (outcome.reason === 'failing') {
          // If a request was sent, the upstream answered about another coin, so only this coin fails.
          if (outcome.requests > 0) this.#waits.answered();
          else this.#waits.add(now, 'unavailable', now);
        } else {
          // All coins wait for the last full day.
          this.#waits.add(outcome.until, outcome.reason, now);
        }
        break;
      case 'refused': {
        const { reason, message } = outcome;
        this.#waits.answered();
        this.refused.set(reason, { chunks: (this.refused.get(reason)?.chunks ?? 0) + 1, message });
        this.#oneDone({ requests: isOurs ? 1 : 0, stored: 0 });
        if (reason !== 'history limit' && reason !== 'interval')
          this.#refusals.add(job.seriesId, `${reason}: ${message}`);
      }
    }
  }

  /** Counts a chunk that another process has finished. */
  countElsewhere(): void {
    this.#waits.answered();
    this.#report({ chunksDone: this.#progress.chunksDone + 1, waiting: null });
  }

  /** Since then, other processes have held everything that is left: for another backfill that wants the same, or for this one. */
  heldElsewhere(since: Instant, now: Instant): void {
    this.#report({ waiting: { until: since + this.#options.maxWaitMs, reason: ANOTHER_PROCESS } });
    this.#waits.add(now, ANOTHER_PROCESS, since);
  }

  /** Only slots with invalid rows are left. They are requested again in a few seconds. */
  dueAgain(at: Instant): void {
    this.#report({ waiting: { until: at, reason: 'invalid rows' } });
  }

  /** An attempt has failed, and will be repeated. */
  retrying(now: Instant): void {
    this.#waits.add(now, 'unavailable', now);
  }

  fail(job: ChunkJob, error: Error): void {
    this.#deferred.delete(chunkJobId(job));
    this.failed.push({ coinId: job.coinId, span: { from: job.from, to: job.to }, message: error.message });
    this.#report({ chunksDone: this.#progress.chunksDone + 1 });
  }

  #oneDone({ requests, stored }: { readonly requests: number; readonly stored: number }): void {
    const before = this.#progress;
    this.#report({
      chunksDone: before.chunksDone + 1,
      requests: before.requests + requests,
      stored: before.stored + stored,
      waiting: null,
    });
  }

  #report(change: Partial<BackfillProgress>): void {
    let progress = { ...this.#progress, ...change };
    const { chunksDone, chunksPlanned } = progress;
    const onlyDeferredLeft = this.#deferred.size > 0 && chunksDone + this.#deferred.size >= chunksPlanned;
    if (progress.waiting === null && onlyDeferredLeft) {
      const soonest = [...this.#deferred.values()].reduce((a, b) => (b.until < a.until ? b : a));
      progress = { ...progress, waiting: soonest };
    }
    // Chunks in progress may end during an outage; the outage continues nevertheless.
    for (const [reason, until] of this.#outages) progress = { ...progress, waiting: { until, reason } };
    this.#progress = progress;
    this.#options.onProgress({ ...progress, chunksPlanned: Math.max(chunksPlanned, chunksDone) });
  }
}

/** Ends a run that would wait for too long. Waits without an answer between them count as one: an outage consists of many short waits. */
function createWaitWatch(maxWaitMs: number, stopWith: (how: BackfillEnd) => void) {
  let since: Instant | null = null;
  return {
    answered: () => {
      since = null;
    },
    add: (until: Instant, reason: string, now: Instant, mostMs = maxWaitMs) => {
      since ??= now;
      if (until - since > mostMs) stopWith({ kind: 'stopped', until, reason });
    },
  };
}

/** Ends a run when the upstream refuses one series after the other. */
function createRefusalWatch(stopWith: (how: BackfillEnd) => void) {
  const inARow = new Set<number>();
  return {
    answered: () => inARow.clear(),
    add: (seriesId: number, why: string) => {
      inARow.add(seriesId);
      if (inARow.size < MOST_REFUSALS_IN_A_ROW) return;
      const message = `the upstream refused ${inARow.size} series in a row (${why}); check CHANDLER_API_KEY and CHANDLER_BASE_URL, or run it again for the others`;
      stopWith({ kind: 'configurationError', message, about: 'series' });
    },
  };
}
