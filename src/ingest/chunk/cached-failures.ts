/**
 * Answers that cannot be used, and that a cache gave: it repeats them until it has forgotten them, so a sooner request would only use up an
 * attempt of the chunk.
 */
import type { Clock, Instant } from '../../clock.ts';
import { afterCaches } from '../../core/second-opinion.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';

export type CachedFailures = {
  /** When another request for this chunk is worth it; null: now. */
  waitingFor(job: ChunkJob): Instant | null;
  /** The chunk was answered so; without effect unless a cache gave the answer. */
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
