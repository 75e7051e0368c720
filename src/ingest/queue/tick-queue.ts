/**
 * The queue of ticks. It only wakes workers: the database stores how far a schedule is (`ops.schedule_run`). So a tick that the queue loses is
 * offered again, and a tick that is offered twice runs once.
 */
import type { Instant } from '../../clock.ts';
import type { Connections } from './queue-engine.ts';

/**
 * The job of a tick. `anew`: a process that has just started offers it, perhaps with a corrected configuration. `first`: there is something to
 * request that did not exist when the tick ran, and nothing of its kind was ever requested.
 */
export type Tick = {
  readonly schedule: string;
  readonly tick: Instant;
  readonly anew?: boolean;
  readonly first?: boolean;
};

export type TickQueue = {
  /** Adds the tick, unless it is already in the queue. */
  offer(tick: Tick): Promise<void>;
  size(): Promise<number>;
  /** Removes everything, which is harmless. */
  wipe(): Promise<void>;
  /** If `handle` rejects, the tick is still removed; it may be offered again. */
  work(options: { readonly concurrency: number; readonly handle: (tick: Tick) => Promise<void> }): {
    /** Waits for the ticks in progress; with `force` it does not. */
    close(force?: boolean): Promise<void>;
  };
  close(): Promise<void>;
};

/** The caller closes the connections, after the queue. */
export function createTickQueue(
  connections: Connections,
  name: string,
  { onError, lockMs }: { readonly onError: (error: Error) => void; readonly lockMs: number },
): TickQueue {
  const queue = connections.queue<Tick>(name);
  return {
    offer: async (tick) => {
      // All processes use the same id: the queue refuses a second job with the same id while the first one exists.
      const jobId = `${tick.schedule}-${tick.tick / 1000}`;
      const opts = { jobId, attempts: 1, removeOnComplete: true, removeOnFail: true };
      await queue.addBulk([{ name: 'tick', data: tick, opts }]);
    },
    size: queue.size,
    wipe: () => queue.obliterate({ force: true }),
    work: ({ concurrency, handle }) => {
      void queue.unpause().catch(onError);
      const worker = connections.worker<Tick>(name, ({ data }) => handle(data), { concurrency, lockMs });
      worker.on('failed', (_tick, error) => onError(error));
      return { close: (force) => worker.close(force) };
    },
    close: () => queue.close(),
  };
}
