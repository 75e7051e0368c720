/** Two workers of this process never have the same chunk in hand. */
import { chunkJobId } from '../queue/chunk-job.ts';
import type { IngestChunk } from './ingest-chunk.ts';

/**
 * The same, for one worker at a time of each chunk: one whose lock was lost while the database was away comes a second time while
 * the first still has it in hand. The second then finds nothing missing.
 */
export function singleFlight(ingestChunk: IngestChunk): IngestChunk {
  const inHand = new Map<string, Promise<unknown>>();
  return async (job, options) => {
    const id = chunkJobId(job);
    for (let other = inHand.get(id); other !== undefined; other = inHand.get(id)) await other.catch(() => undefined);
    const mine = ingestChunk(job, options);
    inHand.set(id, mine);
    return mine.finally(() => inHand.delete(id));
  };
}
