/**
 * A circuit breaker for each series: while the upstream keeps failing on one series, its chunks wait, so that the others go on. When the
 * upstream answers for others all the while, the run gives the series up (one broken coin can neither block the others nor use
 * up the quota). A later run, or a later refresh, tries it once before it gives it up again.
 */
import type { Clock, Instant } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { RedirectLoop, SeriesGivenUp, UpstreamError } from '../outcome.ts';
import { type ChunkJob, describeChunk } from '../queue/chunk-job.ts';
import type { IngestChunk } from './ingest-chunk.ts';

/** One or two failures in a row are chance. */
const CHANCE = 2;
/** The wait is reported with the chunk, so it has no jitter. */
const backoff = createBackoff({ firstMs: 2_000, mostMs: 60_000 });
/** A series is given up after so many failures in a row, if before so many of them another series was answered. */
const GIVEN_UP = { inARow: 8, own: 3 };
/** It is also given up after so many redirect loops in a row. */
const MOST_REDIRECT_LOOPS = 2;

/** The failures of one series since its last answer. */
type Failures = {
  readonly inARow: number;
  /** Those before which another series was answered. */
  readonly own: number;
  /** Redirect loops in a row, at the end. */
  readonly redirectLoops: number;
  /** Of the last failure. */
  readonly at: Instant;
  /** Answers for any series, until then. */
  readonly answers: number;
  /** What was wrong with the last one. */
  readonly problem: string;
};

/** The same, with the circuit breaker. A chunk of a series that waits is `deferred`. @throws SeriesGivenUp */
export function withCircuitBreaker(ingestChunk: IngestChunk, clock: Clock): IngestChunk {
  const failing = new Map<number, Failures>();
  let answers = 0;
  return async (job, options = {}) => {
    const { seriesId } = job;
    const failures = failing.get(seriesId);
    // A run that began after the last failure may try once more.
    if (failures !== undefined && isGivenUp(failures) && job.askedSince <= failures.at)
      throw new SeriesGivenUp(givenUp(job, failures));
    const until = notBefore(failures);
    if (until > clock.now() && !options.signal?.aborted)
      return { kind: 'deferred', until, requests: 0, reason: 'failing' };
    try {
      const outcome = await ingestChunk(job, options);
      if (outcome.kind === 'refused' || (outcome.kind === 'stored' && outcome.requests > 0)) {
        answers++;
        failing.delete(seriesId);
      }
      return outcome;
    } catch (error) {
      if (error instanceof UpstreamError) {
        failing.set(seriesId, afterFailure(failing.get(seriesId), clock.now(), answers, error));
      }
      throw error;
    }
  };
}

function afterFailure(before: Failures | undefined, at: Instant, answers: number, error: UpstreamError): Failures {
  const own = (before?.own ?? 0) + (before === undefined || answers > before.answers ? 1 : 0);
  const redirectLoops = error instanceof RedirectLoop ? (before?.redirectLoops ?? 0) + 1 : 0;
  return { inARow: (before?.inARow ?? 0) + 1, own, redirectLoops, at, answers, problem: error.problem };
}

/** Each chunk of the series has its own message, though not all of them were requested. */
function givenUp(job: ChunkJob, { inARow, problem }: Failures): string {
  return `${describeChunk(job)}: given up, because ${inARow} requests for this series failed in a row; the last one: ${problem}`;
}

/** In an outage no series is answered, so none is given up. */
function isGivenUp({ inARow, own, redirectLoops }: Failures): boolean {
  return redirectLoops >= MOST_REDIRECT_LOOPS || (inARow >= GIVEN_UP.inARow && own >= GIVEN_UP.own);
}

function notBefore(failures: Failures | undefined): Instant {
  if (failures === undefined || failures.inARow <= CHANCE) return Number.NEGATIVE_INFINITY;
  return failures.at + backoff(failures.inARow - CHANCE - 1, WHOLE_BOUND);
}
