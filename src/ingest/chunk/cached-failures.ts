/**
 * Unusable answers from a cache. The cache repeats such an answer until it expires, so an earlier request would only use up an attempt of the chunk.
 */
import type { Clock, Instant } from '../../clock.ts';
import { afterCaches } from '../../core/second-opinion.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';

type CachedFailures = {
  /** When the chunk may be requested again; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** Called when an answer for the chunk cannot be used. It has no effect unless the answer came from a cache. */
  failed(job: ChunkJob, exchange: Pick<Exchange, 'sentAt' | 'ageMs'>): void;
};

export function createCachedFailures(clock: Clock): CachedFailures {
  const until = new Map<string, Instant>();
  return {
    waitingFor: (job) => {
      const at = until.get(chunkJobId(job));
      if (at === undefined || at > clock.now()) return at ?? null;
      until.delete(chunkJobId(job));
      return null;
    },
    failed: (job, { sentAt, ageMs }) => {
      if (ageMs > 0) until.set(chunkJobId(job), afterCaches(sentAt, ageMs));
    },
  };
}
