/**
 * Ingests chunks: one chunk = one request = one unit of quota = one transaction. It may run again at any time: it first checks what is still missing,
 * requests only that, and commits what it learns together or not at all.
 */
import type { Instant } from '../../clock.ts';
import {
  ohlcvParameters,
  ohlcvPath,
  priceHistoryParameters,
  priceHistoryPath,
} from '../../contract/interface/paths.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { INTERVAL_MS, isPriceInterval } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Spender, Stretch, Unwanted } from '../../quota/quota.ts';
import { HOLES } from '../../store/candle/holes.ts';
import { hasStored } from '../../store/snapshot/snapshot.ts';
import type { Answer } from '../../upstream/answer.ts';
import { documentedLimit, earliestSlot, isBeyond, knownDepth } from '../limits/history-limit.ts';
import { createLimitOpinions } from '../limits/limit-opinions.ts';
import { createPaymentOpinions } from '../limits/payment-opinions.ts';
import { ConfigurationError, INTERRUPTED, type Outcome, RedirectLoop, UpstreamError } from '../outcome.ts';
import { type ChunkJob, CONFIRM_HOLES, describeChunk, endpointOf, FRESHNESS } from '../queue/chunk-job.ts';
import { wrongAddress } from '../request/configuration-errors.ts';
import { type OutageRetry, withoutRetry } from '../request/outage-retry.ts';
import type { RequestResult, SendRequest, SentRequest, StretchRequest } from '../request/send-request.ts';
import { createCachedFailures } from './cached-failures.ts';
import { createLastDayWatch, type DayRequest, dayRequestOf, LAST_DAY } from './last-day.ts';
import { type Refused, type SettleRefusalDeps, settleRefusal } from './settle-refusal.ts';
import { createStoreAnswer } from './store-answer.ts';

type IngestChunkDeps = SettleRefusalDeps & { readonly sendRequest: SendRequest };

export type IngestChunkOptions = {
  readonly attempt?: number;
  readonly signal?: AbortSignal;
  /** Waits for a database that is unavailable. Without it the chunk rejects, and its request is sent again later. */
  readonly retry?: OutageRetry;
};

export type IngestChunk = (job: ChunkJob, options?: IngestChunkOptions) => Promise<Outcome>;

const NOTHING: Outcome = { kind: 'stored', requests: 0, stored: 0, revised: 0, quarantined: 0 };

export function createIngestChunk(deps: IngestChunkDeps): IngestChunk {
  const { clock, trust } = deps;
  const limits = createLimitOpinions(deps);
  const payments = createPaymentOpinions(clock, deps.historyLimits.opinions);
  const cachedFailures = createCachedFailures(clock);
  const lastDayWatch = createLastDayWatch(clock, deps.historyLimits.opinions);
  const storeAnswer = createStoreAnswer({ ...deps, limits, lastDayWatch, prove: () => trust.prove() });
  const settle = (job: ChunkJob, sent: SentRequest, retry: OutageRetry, answer: Refused, onlyHere?: boolean) =>
    retry(() => settleRefusal(deps, job, sent, answer, onlyHere));

  /** Derives the outcome of the chunk from the answer to its request. */
  async function conclude(job: ChunkJob, sent: SentRequest, retry: OutageRetry): Promise<Outcome> {
    const { answer, requests } = sent;
    switch (answer.kind) {
      case 'answered':
        await retry(() => payments.answered(job));
        return storeAnswer(job, sent, answer, retry);
      case 'limited': {
        // The ledger makes all requests wait; the next permit request returns until when.
        if (!sent.budgetLeft)
          return { kind: 'snoozed', until: clock.now(), reason: answer.by === 'rate' ? 'limited' : 'quota exhausted' };
        const until = await retry(() => payments.judge(job, answer.exchange));
        if (until !== null) return { kind: 'deferred', until, requests, reason: 'second opinion' };
        return settle(job, sent, retry, asHistoryLimit(answer));
      }
      case 'refused': {
        if (answer.reason !== 'history limit') return settle(job, sent, retry, answer);
        const meaning = await retry(() => limits.judge(job, sent.record.span!, answer));
        if (typeof meaning === 'number')
          return { kind: 'deferred', until: meaning, requests, reason: 'second opinion' };
        return settle(job, sent, retry, answer, meaning === 'span');
      }
      case 'malformed':
        if (answer.astray && !trust.proven && !(await retry(() => hasStored(deps.sql, sent.record.accountId))))
          throw new ConfigurationError(wrongAddress(answer.message));
        throw failure(job, answer.message, sent.isRedirectLoop ? RedirectLoop : UpstreamError);
      case 'unavailable':
        throw failure(job, answer.message);
    }
  }

  async function ingest(job: ChunkJob, options: IngestChunkOptions): Promise<Outcome> {
    const until = payments.waitingFor(job) ?? limits.waitingFor(job) ?? cachedFailures.waitingFor(job);
    if (until !== null) return { kind: 'deferred', until, requests: 0, reason: 'second opinion' };
    const day = dayRequestOf(job, deps.historyLimits, clock.now());
    const lateUntil = day?.subject === LAST_DAY ? lastDayWatch.waitingFor(day.span) : null;
    if (lateUntil !== null) return { kind: 'deferred', until: lateUntil, requests: 0, reason: 'day is late' };
    const question = day === null ? questionOf(job, deps) : questionOfDay(job, day, deps);
    if (question === null) return NOTHING;
    const subject = job.kind === 'holes' ? HOLES : (day?.subject ?? null);
    const sent = await requestChunk(job, { ...question, subject }, deps, options);
    if (sent.kind === 'unwanted') return NOTHING;
    if (sent.kind === 'held') return { kind: 'snoozed', until: sent.until, reason: sent.reason };
    return conclude(job, sent, options.retry ?? withoutRetry).catch((error: unknown) => {
      if (error instanceof UpstreamError) cachedFailures.failed(job, sent.answer.exchange);
      throw error;
    });
  }

  return (job, options = {}) => limits.oneAtATime(job, () => ingest(job, options));
}

/** No request was sent: the run ended while the chunk waited. */
type Interrupted = { readonly kind: 'held'; readonly until: Instant; readonly reason: typeof INTERRUPTED };

/**
 * The request for the part of a chunk within the history limit, which moves forward while the chunk waits in the queue; null when nothing is within.
 */
function questionOf(
  job: ChunkJob,
  { historyLimits, plan, clock }: Pick<IngestChunkDeps, 'historyLimits' | 'plan' | 'clock'>,
): StretchRequest | null {
  const { interval, to } = job;
  const from = Math.max(job.from, earliestSlot(knownDepth(historyLimits.of(interval)), interval, clock.now()));
  const isOfHoles = job.kind === 'holes';
  // Without the candles beside the holes, an answer proves nothing about them.
  if (from >= to || (isOfHoles && from > job.from)) return null;
  const requestedSince = job.askedSince;
  const stretch: Stretch = {
    ...job,
    requestedSince,
    backfillId: backfillOf(job),
    isOfHoles,
    span: { from, to },
    plan: plan.name,
  };
  return {
    stretch,
    about: (gaps) => {
      const span: Span = isOfHoles ? stretch.span : { from: gaps[0]!.from, to: gaps.at(-1)!.to };
      return {
        ...requestOf(job, span, plan, clock.now()),
        span,
        beyondPlan: isBeyond(documentedLimit(plan, interval), interval, span.from, clock.now()),
      };
    },
  };
}

function requestOf({ interval, coinId, quote }: ChunkJob, { from, to }: Span, plan: Plan, now: Instant) {
  if (isPriceInterval(interval)) {
    // It is unknown whether the upstream accepts an end in the future.
    const end = Math.min(to, Math.ceil(now / 1_000) * 1_000 + 1_000);
    return { path: priceHistoryPath(coinId), query: priceHistoryParameters({ from, to: end, interval, quote }) };
  }
  // Both ends are open times, and the answer includes both (decision: ends are inclusive).
  const ends = { from, to: to - INTERVAL_MS[interval] };
  return {
    path: ohlcvPath(coinId),
    query: ohlcvParameters({ ...ends, interval, quote, limit: plan.candlesPerRequest }),
  };
}

function questionOfDay(
  job: ChunkJob,
  { span, path }: DayRequest,
  { plan }: Pick<IngestChunkDeps, 'plan'>,
): StretchRequest {
  const requestedSince = job.askedSince;
  const stretch: Stretch = {
    ...job,
    requestedSince,
    backfillId: backfillOf(job),
    isOfHoles: false,
    span,
    plan: plan.name,
  };
  return { stretch, about: () => ({ path, query: { quote: job.quote }, span, beyondPlan: false }) };
}

async function requestChunk(
  job: ChunkJob,
  { subject, ...question }: StretchRequest & { readonly subject: string | null },
  { sendRequest, clock }: Pick<IngestChunkDeps, 'sendRequest' | 'clock'>,
  { attempt = 1, signal, retry = withoutRetry }: IngestChunkOptions,
): Promise<RequestResult | Unwanted | Interrupted> {
  const record = {
    endpoint: endpointOf(job.interval),
    seriesId: job.seriesId,
    backfillId: backfillOf(job),
    attempt,
    subject,
  };
  return sendRequest(question, { spender: spenderOf(job), record, signal, retry }).catch(
    (error: unknown): Interrupted => {
      // The chunk goes back to the queue unchanged.
      if (signal?.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED };
      throw error;
    },
  );
}

export function spenderOf(job: ChunkJob): Spender {
  switch (job.kind) {
    case 'freshness':
      return { class: 'scheduled', name: FRESHNESS };
    case 'holes':
      return { class: 'backfill', name: CONFIRM_HOLES };
    case 'backfill':
      return { class: 'backfill', name: `backfill ${job.backfillId}` };
  }
}

export function backfillOf(job: ChunkJob): number | null {
  return job.kind === 'backfill' ? job.backfillId : null;
}

function failure(job: ChunkJob, problem: string, Kind = UpstreamError): UpstreamError {
  return new Kind(`${describeChunk(job)}: ${problem}`, problem);
}

/** A believed 402 without the text of a history limit counts as one. */
function asHistoryLimit({ exchange, message }: Extract<Answer, { kind: 'limited' }>): Refused {
  return { kind: 'refused', reason: 'history limit', notBefore: null, message, exchange };
}
