/**
 * A circuit breaker for each series. While the upstream keeps failing on one series, its chunks wait, and other series continue. After each wait the
 * worker tries one chunk. If the upstream answers for other series meanwhile, the series is given up (one broken coin can neither block the others nor
 * use up the quota). If nothing else is requested, one request about another coin shows whether the coin is broken or the upstream is down. A later
 * run, or a later refresh, tries the series once before it gives it up again.
 */
import type { Clock, Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { type Outcome, RedirectLoop, SeriesGivenUp, UpstreamError } from '../outcome.ts';
import { type ChunkJob, describeChunk, endpointOf } from '../queue/chunk-job.ts';
import type { RequestOtherCoin } from '../request/request-other-coin.ts';
import { backfillOf, type IngestChunk, type IngestChunkOptions, spenderOf } from './ingest-chunk.ts';

/** One or two failures in a row may be accidents. */
const CHANCE = 2;
/** The wait is reported with the chunk, so it has no jitter. */
const backoff = createBackoff({ firstMs: 2_000, mostMs: 60_000 });
/** A series is given up after `inARow` failures in a row, if the upstream answered for another series before `own` of them. */
const GIVEN_UP = { inARow: 8, own: 3 };
/**
 * From this many failures in a row on, another series must have been answered before each request; if none was, another coin is requested. Together
 * with the first failure, these requests are enough to give the series up.
 */
const ASK_OTHER_FROM = GIVEN_UP.inARow - (GIVEN_UP.own - 1);
/** While a chunk of a failing series, or another coin, is requested, the other chunks of the series wait this long at a time. */
const MOMENT_MS = 1_000;
/** A series is also given up after this many redirect loops in a row. */
const MOST_REDIRECT_LOOPS = 2;

/** The failures of one series since its last answer. */
type Failures = {
  readonly inARow: number;
  /** Failures before which another series was answered. */
  readonly own: number;
  /** Redirect loops in a row, up to the last failure. */
  readonly redirectLoops: number;
  /** When the last failure happened. */
  readonly at: Instant;
  /** When the wait began: at the last failure, or at a later failed request about another coin. */
  readonly waitsSince: Instant;
  /** Answers for any series at the same endpoint, counted at the last failure. */
  readonly answers: number;
  /** The problem of the last failure. */
  readonly problem: string;
};

/** Wraps a function with the circuit breaker. A chunk of a waiting series is `deferred`. @throws SeriesGivenUp */
export type CircuitBreaker = (ingestChunk: IngestChunk) => IngestChunk;

/** All functions that it wraps share what it learns about a series: a service begins a new run after each wait. */
export function createCircuitBreaker({
  clock,
  requestOtherCoin,
}: {
  readonly clock: Clock;
  readonly requestOtherCoin: RequestOtherCoin;
}): CircuitBreaker {
  const failing = new Map<number, Failures>();
  /** The failing series with a request in progress: about the series itself, or about another coin. */
  const trying = new Set<number>();
  const answers = { ohlcv: 0, prices: 0 };

  /** Requests another coin, if nothing else was answered. Returns the outcome for the chunk of the failing series; null: it may be requested. */
  async function judgeByOther(job: ChunkJob, failures: Failures, options: IngestChunkOptions): Promise<Outcome | null> {
    const endpoint = endpointOf(job.interval);
    if (failures.inARow < ASK_OTHER_FROM || answers[endpoint] > failures.answers) return null;
    const { seriesId, coinId, interval } = job;
    const who = { spender: spenderOf(job), backfillId: backfillOf(job) };
    const about = { coinId, interval, ...who, since: failures.at };
    const other = await requestOtherCoin(about, options);
    switch (other.kind) {
      case 'no other':
        return null;
      case 'held':
        return { kind: 'snoozed', until: other.until, reason: other.reason };
      case 'answered':
        answers[endpoint]++;
        // The run must learn that the upstream answers. The chunk itself is requested in its next turn.
        return { kind: 'deferred', until: clock.now(), requests: other.requests, reason: 'failing' };
      case 'unanswered':
        // The upstream is down. The chunk is not requested, because that would use one of its attempts.
        if (failing.get(seriesId) === failures) failing.set(seriesId, { ...failures, waitsSince: clock.now() });
        return { kind: 'snoozed', until: clock.now(), reason: 'unavailable' };
    }
  }

  return (ingestChunk) => {
    const request: IngestChunk = async (job, options) => {
      const { seriesId } = job;
      try {
        const outcome = await ingestChunk(job, options);
        if (outcome.kind === 'refused' || (outcome.kind === 'stored' && outcome.requests > 0)) {
          answers[endpointOf(job.interval)]++;
          failing.delete(seriesId);
        }
        return outcome;
      } catch (error) {
        if (error instanceof UpstreamError) {
          const answered = answers[endpointOf(job.interval)];
          failing.set(seriesId, afterFailure(failing.get(seriesId), clock.now(), answered, error));
        }
        throw error;
      }
    };
    return async (job, options = {}) => {
      const { seriesId } = job;
      const failures = failing.get(seriesId);
      // A run that began after the last failure may try once more.
      if (failures !== undefined && isGivenUp(failures) && job.askedSince <= failures.at)
        throw new SeriesGivenUp(givenUp(job, failures));
      if (failures === undefined || mayBeChance(failures) || options.signal?.aborted) return request(job, options);
      const until = trying.has(seriesId) ? clock.now() + MOMENT_MS : notBefore(failures);
      if (until > clock.now()) return { kind: 'deferred', until, requests: 0, reason: 'failing' };
      // Nothing may be awaited since the failures were read: two workers would both see that one more try is allowed.
      trying.add(seriesId);
      try {
        return (await judgeByOther(job, failures, options)) ?? (await request(job, options));
      } finally {
        trying.delete(seriesId);
      }
    };
  };
}

function afterFailure(before: Failures | undefined, at: Instant, answers: number, error: UpstreamError): Failures {
  const own = (before?.own ?? 0) + (before === undefined || answers > before.answers ? 1 : 0);
  const redirectLoops = error instanceof RedirectLoop ? (before?.redirectLoops ?? 0) + 1 : 0;
  return { inARow: (before?.inARow ?? 0) + 1, own, redirectLoops, at, waitsSince: at, answers, problem: error.problem };
}

/** Each chunk of the series has its own message, even if it was not requested. */
function givenUp(job: ChunkJob, { inARow, problem }: Failures): string {
  return `${describeChunk(job)}: given up, because ${inARow} requests for this series failed in a row; the last one: ${problem}`;
}

/** During an outage the upstream answers nothing, so no series is given up. */
function isGivenUp({ inARow, own, redirectLoops }: Failures): boolean {
  return redirectLoops >= MOST_REDIRECT_LOOPS || (inARow >= GIVEN_UP.inARow && own >= GIVEN_UP.own);
}

function mayBeChance(failures: Failures): boolean {
  return failures.inARow <= CHANCE && !isGivenUp(failures);
}

function notBefore({ inARow, waitsSince }: Failures): Instant {
  return inARow <= CHANCE ? Number.NEGATIVE_INFINITY : waitsSince + backoff(inARow - CHANCE - 1, WHOLE_BOUND);
}
