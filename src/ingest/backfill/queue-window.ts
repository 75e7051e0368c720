/**
 * The chunks of one backfill that are in the queue now. Of those that end in other processes nobody tells: the queue is looked at, the
 * sooner the more of the window they take, so that it never runs dry while there is more to ask.
 */
import type { Clock } from '../../clock.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { MissingChunks } from './missing-chunks.ts';

export type QueueWindow = {
  add(jobs: readonly ChunkJob[]): Promise<void>;
  /** Resolves when at most `count` chunks are left in it, or the signal fires. The queue is looked at every `mostMs` at least. */
  shrunkTo(count: number, signal: AbortSignal, mostMs?: number): Promise<void>;
  /** A chunk has ended here: its place is free. */
  ended(job: ChunkJob): void;
  has(job: ChunkJob): boolean;
  size(): number;
  jobs(): readonly ChunkJob[];
};

export type QueueWindowDeps = {
  readonly clock: Clock;
  readonly queue: Pick<ChunkQueue, 'add' | 'ids' | 'unpause'>;
  /** Whose chunks are taken first, where several keep theirs in the queue. */
  readonly priority: number;
  /** For a database that is unavailable, and the queue in it. */
  readonly retry: OutageRetry;
  /** Chunks in the queue at most. */
  readonly window: number;
  /** How often the window is compared with the queue at least. */
  readonly checkEveryMs: number;
  /** Told of a chunk that another process has done. One that was wiped or failed there, and still is missing, comes again instead. */
  readonly onGone: (job: ChunkJob) => void;
};

/** How often the window is compared with the queue at most. */
const SOONEST_CHECK_MS = 125;

export function createQueueWindow(deps: QueueWindowDeps, doneOf: MissingChunks['doneOf']): QueueWindow {
  const { clock, queue, window, retry, checkEveryMs } = deps;
  const inFlight = new Map<string, ChunkJob>();
  /** What the queue did not have when it was looked at last. */
  let gone = new Set<string>();
  let checkMs = Math.min(2 * SOONEST_CHECK_MS, checkEveryMs);
  let checkedAt = clock.now();
  /** Called when a chunk ended. */
  let look: () => void = () => undefined;

  /**
   * Done by another process, failed there, or wiped: the next pass finds out what of it is still missing. Only what is gone
   * twice in a row: the end of one that ends here is told a moment after the queue has forgotten it.
   */
  async function compare(): Promise<void> {
    await retry(() => queue.unpause());
    const there = await retry(() => queue.ids());
    const missing = [...inFlight].filter(([id]) => !there.has(id));
    const before = gone;
    gone = new Set();
    const ended: ChunkJob[] = [];
    for (const [id, job] of missing) {
      if (!before.has(id)) gone.add(id);
      else if (inFlight.delete(id)) ended.push(job);
    }
    for (const job of await retry(() => doneOf(ended))) deps.onGone(job);
    if (gone.size > window / 8) checkMs = Math.max(SOONEST_CHECK_MS, checkMs / 2);
    else if (gone.size < window / 32) checkMs = Math.min(checkEveryMs, checkMs * 2);
    checkedAt = clock.now();
  }

  return {
    add: async (jobs) => {
      for (const job of jobs) inFlight.set(chunkJobId(job), job);
      await retry(() => queue.add(jobs, deps.priority));
    },
    shrunkTo: async (count, signal, mostMs = checkEveryMs) => {
      const isOver = () => inFlight.size <= count || signal.aborted;
      while (!isOver()) {
        const waiting = new AbortController();
        look = () => {
          if (isOver()) waiting.abort();
        };
        signal.addEventListener('abort', look, { signal: waiting.signal });
        // A clock that was set back must not put it off.
        const everyMs = Math.min(checkMs, mostMs);
        const waitMs = Math.min(everyMs, checkedAt + everyMs - clock.now());
        await clock.sleep(Math.max(0, waitMs), waiting.signal).catch(() => undefined);
        waiting.abort();
        if (!isOver()) await compare();
      }
    },
    ended: (job) => {
      if (inFlight.delete(chunkJobId(job))) look();
    },
    has: (job) => inFlight.has(chunkJobId(job)),
    size: () => inFlight.size,
    jobs: () => [...inFlight.values()],
  };
}
