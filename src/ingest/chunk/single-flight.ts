/** Makes sure that two workers of this process never work on the same chunk at the same time. */
import { chunkJobId } from '../queue/chunk-job.ts';
import type { IngestChunk } from './ingest-chunk.ts';

/**
 * Lets one worker at a time ingest a chunk. If a worker loses the lock of its job while the database is unavailable, the queue gives the chunk to a
 * second worker. The second one waits for the first, and then finds nothing missing.
 */
export function singleFlight(ingestChunk: IngestChunk): IngestChunk {
  const inProgress = new Map<string, Promise<unknown>>();
  return async (job, options) => {
    const id = chunkJobId(job);
    for (let other = inProgress.get(id); other !== undefined; other = inProgress.get(id))
      await other.catch(() => undefined);
    const mine = ingestChunk(job, options);
    inProgress.set(id, mine);
    return mine.finally(() => inProgress.delete(id));
  };
}
