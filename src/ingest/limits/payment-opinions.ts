/**
 * Second opinions about a 402 that names no history limit, although requests seem to be left. It may mean that the plan does not include this
 * series, or nothing at all. Chandler believes it after a second 402 for the same series, with no answer for the series between the two, or after a
 * second 402 for the same chunk.
 */
import type { Clock, Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import { REQUEST_AGAIN_MS } from '../../core/second-opinion.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import { type AnswerTime, type SecondOpinions, toReceivedAnswer } from './second-opinions.ts';

/** When so many series of one interval wait for a second opinion, and none was answered since, the other series wait for them. */
const MOST_SERIES_WAITING = 8;

type PaymentOpinions = {
  /** When the chunk may be requested; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** Resolves to when the chunk may be requested again; null: the 402 is believed. */
  judge(job: ChunkJob, exchange: AnswerTime): Promise<Instant | null>;
  /** Called when the upstream answered a request for the chunk with something other than a refusal. */
  answered(job: ChunkJob): Promise<void>;
};

export function createPaymentOpinions(clock: Clock, opinions: SecondOpinions): PaymentOpinions {
  /** When a series of the interval was last answered, or when its 402 was last believed. */
  const settledAt = new Map<Interval, Instant>();

  const waitingForOthers = (interval: Interval, now: Instant) => {
    const since = settledAt.get(interval) ?? Number.NEGATIVE_INFINITY;
    const waiting = opinions
      .list('series without payment')
      .filter((claim) => claim.evidence?.interval === interval && claim.requestedAt > since);
    if (waiting.length < MOST_SERIES_WAITING) return null;
    const dueAt = Math.min(...waiting.map((claim) => claim.requestedAt)) + REQUEST_AGAIN_MS;
    // The process that planned to send the second request may have ended.
    return now < dueAt + REQUEST_AGAIN_MS ? Math.max(dueAt, now) + 1_000 : null;
  };
  return {
    waitingFor: (job) => {
      const now = clock.now();
      const chunk = opinions.find('chunk without payment', chunkJobId(job));
      if (chunk === null) return waitingForOthers(job.interval, now);
      return chunk.retryAt > now ? chunk.retryAt : null;
    },
    judge: async (job, exchange) => {
      const { interval, seriesId } = job;
      const now = clock.now();
      const received = toReceivedAnswer(now, exchange);
      const evidence = { interval };
      const ofChunk = await opinions.record('chunk without payment', chunkJobId(job), received, () => ({
        says: 'agrees',
      }));
      const ofSeries = await opinions.record('series without payment', `${seriesId}`, received, () => ({
        says: 'agrees',
        evidence,
      }));
      if (ofChunk.kind === 'waiting' && ofSeries.kind === 'waiting') return ofChunk.claim.retryAt;
      settledAt.set(interval, now);
      return null;
    },
    answered: async (job) => {
      settledAt.set(job.interval, clock.now());
      await opinions.drop('chunk without payment', chunkJobId(job));
      await opinions.drop('series without payment', `${job.seriesId}`);
    },
  };
}
