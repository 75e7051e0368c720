/**
 * A 402 that names no wall, although by all that is known requests are left: it may mean that the plan does not include this, or
 * nothing at all. One is doubted; a wall is believed in after a second one for the same series, asked for after the first was
 * heard of, with nothing of the series answered between, or after a second one for the same chunk.
 */
import type { Instant } from '../../clock.ts';
import type { Interval } from '../../core/interval.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';

/** Upstream's caches repeat a 402 for 60 s, and for 10 more while they look again: sooner it would be the same answer. */
export const ASK_AGAIN_MS = 75_000;
/** So many series of one interval in doubt, and none answered since the first: the others wait for what comes of these. */
const MOST_IN_DOUBT = 8;

export type Doubts = {
  /** When this chunk is worth asking; null: now. */
  waitingFor(job: ChunkJob, now: Instant): Instant | null;
  /** When this chunk is worth asking again; null when it is believed. `heardAt` is now. */
  doubt(job: ChunkJob, sentAt: Instant, heardAt: Instant): Instant | null;
  /** Something of this series was answered. */
  answered(job: ChunkJob): void;
};

export function createDoubts(): Doubts {
  /** By series: when the first one was heard of. */
  const since = new Map<number, Instant>();
  const chunks = new Set<string>();
  /** By interval: series in doubt since one of the interval was answered or believed, and when the first of them is asked again. */
  const inDoubt = new Map<Interval, { readonly series: Set<number>; readonly dueAt: Instant }>();
  return {
    waitingFor: (job, now) => {
      const doubted = inDoubt.get(job.interval);
      if (doubted === undefined || doubted.series.size < MOST_IN_DOUBT || chunks.has(chunkJobId(job))) return null;
      // Whoever was to ask it again may have ended.
      return now < doubted.dueAt + ASK_AGAIN_MS ? Math.max(doubted.dueAt, now) + 1_000 : null;
    },
    doubt: (job, sentAt, heardAt) => {
      const id = chunkJobId(job);
      const first = since.get(job.seriesId);
      if (chunks.has(id) || (first !== undefined && sentAt > first)) {
        inDoubt.delete(job.interval);
        return null;
      }
      if (first === undefined) since.set(job.seriesId, heardAt);
      chunks.add(id);
      const dueAt = heardAt + ASK_AGAIN_MS;
      const doubted = inDoubt.get(job.interval) ?? { series: new Set(), dueAt };
      doubted.series.add(job.seriesId);
      inDoubt.set(job.interval, doubted);
      return dueAt;
    },
    answered: (job) => {
      const { seriesId, interval } = job;
      chunks.delete(chunkJobId(job));
      since.delete(seriesId);
      inDoubt.delete(interval);
    },
  };
}
