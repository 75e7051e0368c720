/**
 * The chunks of one backfill that are in the queue now. No other process reports which chunks it has finished, so this process compares its list with
 * the queue. It compares more often when others take more chunks, so that the queue never runs empty while chunks are missing.
 */
import type { Clock, Instant } from '../../clock.ts';
import { type ChunkJob, chunkJobId } from '../queue/chunk-job.ts';
import type { ChunkQueue } from '../queue/chunk-queue.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { MissingChunks } from './missing-chunks.ts';

type QueueWindow = {
  add(jobs: readonly ChunkJob[]): Promise<void>;
  /** Resolves when at most `count` chunks are left, or the signal is aborted. It reads the queue at least every `mostMs`. */
  shrunkTo(count: number, signal: AbortSignal, mostMs?: number): Promise<void>;
  /** A chunk has ended in this process: its place in the window is free. */
  ended(job: ChunkJob): void;
  has(job: ChunkJob): boolean;
  size(): number;
  jobs(): readonly ChunkJob[];
};

export type QueueWindowDeps = {
  readonly clock: Clock;
  readonly queue: Pick<ChunkQueue, 'add' | 'ids' | 'begunIds' | 'unpause'>;
  /** Workers take the chunks of the backfill with the highest priority first. */
  readonly priority: number;
  /** Waits for a database or a queue that is unavailable. */
  readonly retry: OutageRetry;
  /** The most chunks in the queue. */
  readonly window: number;
  /** The longest time between two comparisons of the window with the queue. */
  readonly checkEveryMs: number;
  /** Called with a chunk that another process has finished. A chunk that is still missing (wiped, or failed there) comes in the next pass. */
  readonly onGone: (job: ChunkJob) => void;
  /** Does this process work on the chunk with this id, or continue it after a wait? */
  readonly isOwn: (id: string) => boolean;
  /** Called repeatedly while other processes hold all chunks of the window for longer than a request takes, with when that began. */
  readonly onHeldElsewhere: (since: Instant) => void;
};

/** The shortest time between two comparisons of the window with the queue. */
const SOONEST_CHECK_MS = 125;
/** For this long, a chunk that another process has begun does not count as a wait: a request rarely takes longer. */
const ORDINARY_MS = 5_000;

export function createQueueWindow(deps: QueueWindowDeps, doneOf: MissingChunks['doneOf']): QueueWindow {
  const { clock, queue, window, retry, checkEveryMs } = deps;
  const inFlight = new Map<string, ChunkJob>();
  /** Chunks that were not in the queue at the last comparison. */
  let gone = new Set<string>();
  let checkMs = Math.min(2 * SOONEST_CHECK_MS, checkEveryMs);
  let checkedAt = clock.now();
  /** Since when other processes have held all chunks of the window; null: they do not hold all. */
  let heldSince: Instant | null = null;
  /** Called when a chunk ends. */
  let look: () => void = () => undefined;

  /**
   * Removes the chunks that have left the queue: done or failed in another process, or wiped. The next pass finds those that are still missing. Only
   * a chunk that is gone twice in a row counts: when a chunk ends here, the queue removes it a moment before `ended` is called.
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
    const isHeld = ended.length === 0 && (await areElsewhere([...inFlight.keys()].filter((id) => there.has(id))));
    heldSince = isHeld ? (heldSince ?? clock.now()) : null;
    if (heldSince !== null && clock.now() - heldSince >= ORDINARY_MS) deps.onHeldElsewhere(heldSince);
    if (gone.size > window / 8) checkMs = Math.max(SOONEST_CHECK_MS, checkMs / 2);
    else if (gone.size < window / 32) checkMs = Math.min(checkEveryMs, checkMs * 2);
    checkedAt = clock.now();
  }

  async function areElsewhere(ids: readonly string[]): Promise<boolean> {
    if (ids.length === 0 || ids.some(deps.isOwn)) return false;
    const begun = await retry(() => queue.begunIds());
    return ids.every((id) => begun.has(id));
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
        // A clock that was set back must not stretch the wait.
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
