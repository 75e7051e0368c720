/** The chunks that this process works on, or continues after a wait. Another process may have begun any other chunk of the queue. */
import type { Clock, Instant } from '../../clock.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';

export type OwnChunks = {
  begun(job: ChunkJob): void;
  /** The chunk waits in the queue until then, for a retry or a second opinion. After that, another process with a free worker may take it first. */
  waits(job: ChunkJob, until: Instant): void;
  /** The chunk has ended, or is back in its place in the queue. */
  left(job: ChunkJob): void;
  has(id: string): boolean;
};

/** How long after its wait a chunk still counts as this process's own. */
const TAKEN_UP_MS = 2_000;

export function createOwnChunks(clock: Clock): OwnChunks {
  /** By chunk id, until when the chunk is this process's own; infinite: in progress. */
  const own = new Map<string, Instant>();
  return {
    begun: (job) => own.set(chunkJobId(job), Number.POSITIVE_INFINITY),
    waits: (job, until) => own.set(chunkJobId(job), until + TAKEN_UP_MS),
    left: (job) => own.delete(chunkJobId(job)),
    has: (id) => (own.get(id) ?? 0) > clock.now(),
  };
}
