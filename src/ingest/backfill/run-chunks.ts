/** The chunks of a run that the queue holds: where they are, and how they are given back at the end. */
import type { Clock } from '../../clock.ts';
import { toIso } from '../../core/format.ts';
import type { StoredChunks } from '../../store/backfill/backfill-finish.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';

/** The state of a run: how many requests are left, and where its chunks are (null: unknown). */
export type RunState = { readonly leftRequests: number; readonly chunks: StoredChunks | null };

/** At its end, a run waits this often and this long for other processes to finish its chunks: a request rarely takes longer. */
const LOOKS = 20;
const LOOK_MS = 250;

/** Reads where the chunks of a run are, in all processes. Null while the queue is unavailable; the run itself reports that and waits. */
export async function readPlaces(queue: ChunkQueue, jobs: readonly ChunkJob[]): Promise<StoredChunks | null> {
  const places = await queue.placesOf(jobs).catch(() => null);
  if (places === null) return null;
  const byId = new Map(jobs.map((job) => [chunkJobId(job), job]));
  const { inProgress, queued, retrying, waits } = places;
  return {
    inProgress,
    queued,
    retrying,
    retryFrom: toIso(waits[0]?.until ?? null),
    retryTo: toIso(waits.at(-1)?.until ?? null),
    waits: waits.map(({ id, until, reason, attempts }) => {
      const { coinId, from, to } = byId.get(id)!;
      return { coinId, from: toIso(from)!, to: toIso(to)!, until: toIso(until)!, reason, attempts };
    }),
  };
}

/**
 * Removes the chunks that no worker has begun, and waits briefly for those that other processes work on, so that the report includes their requests.
 * It removes chunks before each look, because another process may have given a chunk back.
 */
export async function returnChunks(queue: ChunkQueue, clock: Clock, jobs: readonly ChunkJob[]): Promise<void> {
  let left = jobs;
  for (let looks = 0; looks < LOOKS && left.length > 0; looks++) {
    if (looks > 0) await clock.sleep(LOOK_MS);
    await queue.remove(left);
    const states = await queue.statesOf(left);
    left = left.filter((_, i) => states[i] !== 'gone');
  }
}
