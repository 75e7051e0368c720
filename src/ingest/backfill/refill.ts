/**
 * Keeps a bounded window of chunks in the queue while a backfill runs.
 *
 * It goes through the coins in passes. A pass reads each series once and cuts it into chunks, newest first, from a few series in turn. The next pass
 * begins when all chunks of this one have ended, so chunks of one series never overlap. The run ends when a pass finds no missing chunk except those
 * that were given up, unless slots are due again in a few seconds. If a chunk of the window has left the queue and is still missing, the next pass
 * finds it.
 */
import type { Instant } from '../../clock.ts';
import type { ChunkJob } from '../queue/chunk-job.ts';
import { createMissingChunks, type MissingChunksDeps } from './missing-chunks.ts';
import { createQueueWindow, type QueueWindowDeps } from './queue-window.ts';

export type Refill = {
  /** Resolves when a whole pass has found nothing to fetch, or the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** A chunk has ended: its place in the window is free. */
  ended(job: ChunkJob, how: 'done' | 'failed'): void;
  /** Is the chunk in the window now? */
  has(job: ChunkJob): boolean;
  /** The chunks in the window now. */
  inFlight(): readonly ChunkJob[];
  /** Were slots left to backfills before this one in the last pass? */
  leftSlotsToOthers(): boolean;
};

export type RefillDeps = Omit<MissingChunksDeps, 'lanes'> &
  QueueWindowDeps & {
    /** Called before the run waits until slots with invalid rows are due again. */
    readonly onDueAgain: (at: Instant) => void;
  };

/** The longest time between two comparisons of the window with the queue, while a pass waits for its last chunks. */
const LAST_ONES_CHECK_MS = 500;

export function createRefill(deps: RefillDeps): Refill {
  const { retry, clock, window: size } = deps;
  const missing = createMissingChunks({ ...deps, lanes: size / 4 });
  const window = createQueueWindow(deps, missing.doneOf);
  const drained = (signal: AbortSignal) => window.shrunkTo(0, signal, LAST_ONES_CHECK_MS);

  /** Adds all missing chunks to the queue, and waits for room; resolves to their number. */
  async function pass(signal: AbortSignal): Promise<number> {
    let count = 0;
    let next: ChunkJob[] = [];
    for await (const job of missing.pass()) {
      if (signal.aborted) return count;
      next.push(job);
      count++;
      if (window.size() + next.length < size) continue;
      await window.add(next);
      next = [];
      // Refill when half of the window is gone: few large additions instead of many small ones.
      await window.shrunkTo(size / 2, signal);
    }
    await window.add(next);
    return count;
  }

  return {
    run: async (signal) => {
      // If an outage has cut off a pass, a new pass begins when none of its chunks is in progress any more.
      const wholePass = () =>
        retry(async (again) => {
          if (again) await drained(signal);
          return pass(signal);
        });
      while (!signal.aborted) {
        const since = clock.now();
        if ((await wholePass()) > 0) {
          await drained(signal);
          continue;
        }
        if (signal.aborted) return;
        const dueAt = await retry(() => missing.dueAgain(since));
        if (dueAt === null) return;
        deps.onDueAgain(dueAt);
        await clock.sleep(Math.max(0, dueAt - clock.now()), signal).catch(() => undefined);
      }
    },
    ended: (job, how) => {
      // A chunk that has already left the window does not count as failed: the next pass requests it once more.
      if (how === 'failed' && window.has(job)) missing.giveUp(job);
      window.ended(job);
    },
    has: window.has,
    inFlight: window.jobs,
    leftSlotsToOthers: missing.leftSlotsToOthers,
  };
}
