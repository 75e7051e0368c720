/**
 * The queue of ticks: only a doorbell. The database knows where a schedule stands (`ops.schedule_run`). So a tick that the queue loses is
 * offered again, and a tick that is offered twice runs once.
 */
import type { Instant } from '../../clock.ts';
import type { Connections } from './queue-engine.ts';

/**
 * The job of a tick. `anew`: a process that has just started offers it, perhaps with a corrected configuration. `first`: there is something
 * to request that was not there when the tick ran, and nothing of its kind was ever requested.
 */
export type Tick = {
  readonly schedule: string;
  readonly tick: Instant;
  readonly anew?: boolean;
  readonly first?: boolean;
};

export type TickQueue = {
  /** Adds it, unless it is there. */
  offer(tick: Tick): Promise<void>;
  size(): Promise<number>;
  /** Removes everything: harmless. */
  wipe(): Promise<void>;
  /** A tick that `handle` rejects is removed all the same, until it is offered again. */
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
      // The same id from every process: the queue refuses a second job of an id while the first one lives.
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
