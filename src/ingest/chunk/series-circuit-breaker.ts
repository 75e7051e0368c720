/**
 * Lets a series that upstream keeps failing on step back, so that the others get on; and gives it up in this run when upstream
 * answers for others all the while (promise P6: one poisoned coin can neither block the others nor burn the quota). A later run, or
 * turn, tries it once before it gives it up again.
 */
import type { Clock, Instant } from '../../clock.ts';
import { RedirectLoop, SeriesGivenUp, UpstreamError } from '../outcome.ts';
import type { IngestChunk } from './ingest-chunk.ts';

/** One or two failures in a row are chance. */
const CHANCE = 2;
const FIRST_STEP_BACK_MS = 2_000;
const LONGEST_STEP_BACK_MS = 60_000;
/** Failures in a row, as many as a chunk has attempts; so many of them with an answer for another series since the one before. */
const HOPELESS = { inARow: 8, own: 3 };
/** Redirects without an end in a row, whatever is answered for others. */
const MOST_LED_AROUND = 2;

type Trouble = {
  readonly inARow: number;
  /** Those of them that are its own: others were answered since the one before. */
  readonly own: number;
  /** Those at the end that were redirects without an end. */
  readonly ledAround: number;
  readonly at: Instant;
  /** Answers for any series there had been at that time. */
  readonly answers: number;
  readonly message: string;
};

export function withCircuitBreaker(ingestChunk: IngestChunk, clock: Clock): IngestChunk {
  const troubled = new Map<number, Trouble>();
  let answers = 0;
  return async (job, options = {}) => {
    const { seriesId } = job;
    const trouble = troubled.get(seriesId);
    // Whoever asks anew since then may try once more.
    if (trouble !== undefined && isHopeless(trouble) && job.askedSince <= trouble.at)
      throw new SeriesGivenUp(trouble.message);
    const until = notBefore(trouble);
    if (until > clock.now() && !options.signal?.aborted)
      return { kind: 'deferred', until, requests: 0, reason: 'failing' };
    try {
      const outcome = await ingestChunk(job, options);
      if (outcome.kind === 'refused' || (outcome.kind === 'stored' && outcome.requests > 0)) {
        answers++;
        troubled.delete(seriesId);
      }
      return outcome;
    } catch (error) {
      if (error instanceof UpstreamError) {
        troubled.set(seriesId, afterFailure(troubled.get(seriesId), clock.now(), answers, error));
      }
      throw error;
    }
  };
}

function afterFailure(before: Trouble | undefined, at: Instant, answers: number, error: UpstreamError): Trouble {
  const own = (before?.own ?? 0) + (before === undefined || answers > before.answers ? 1 : 0);
  const ledAround = error instanceof RedirectLoop ? (before?.ledAround ?? 0) + 1 : 0;
  return { inARow: (before?.inARow ?? 0) + 1, own, ledAround, at, answers, message: error.message };
}

/** In an outage nobody is answered, so no series is to blame. */
function isHopeless({ inARow, own, ledAround }: Trouble): boolean {
  return ledAround >= MOST_LED_AROUND || (inARow >= HOPELESS.inARow && own >= HOPELESS.own);
}

function notBefore(trouble: Trouble | undefined): Instant {
  if (trouble === undefined || trouble.inARow <= CHANCE) return Number.NEGATIVE_INFINITY;
  return trouble.at + Math.min(FIRST_STEP_BACK_MS * 2 ** (trouble.inARow - CHANCE - 1), LONGEST_STEP_BACK_MS);
}
