/**
 * The queue of ticks: a bell, nothing more. Where a schedule stands is in the database (`ops.schedule_run`), so a tick that is
 * lost is rung again, and one that is rung twice is run once.
 */
import { JOB_LOCK_MS } from '../../store/work/lease.ts';
import { type Connections, connect, type QueueEngine } from './queue-engine.ts';
import { type Tick, tickJobId } from './tick-job.ts';

export type TickQueueOptions = {
  readonly engine: QueueEngine;
  /** Tells installations that share one Redis apart. */
  readonly name?: string;
  /** Connections of the Postgres engine at most; must be larger than the number of workers. */
  readonly maxConnections?: number;
  /** Errors of the engine's connections; the queue reconnects by itself. */
  readonly onError: (error: Error) => void;
  /** How long a dead worker's tick stays locked. */
  readonly lockMs?: number;
};

export type TickQueue = {
  /** Adds it, unless it is there. */
  offer(tick: Tick): Promise<void>;
  size(): Promise<number>;
  /** Removes everything: harmless. */
  wipe(): Promise<void>;
  /** A tick that `handle` rejects is gone all the same, until it is offered again. */
  work(options: { readonly concurrency: number; readonly handle: (tick: Tick) => Promise<void> }): {
    /** Waits for what is in hand; with `force` it does not. */
    close(force?: boolean): Promise<void>;
  };
  close(): Promise<void>;
};

const JOB = 'tick';
/** How soon a worker whose engine is unavailable looks for it again. */
const LOOK_AGAIN_MS = 1_000;

/** One on an engine of its own. @throws when the engine cannot be reached at all. */
export async function openTickQueue({ name = 'ticks', ...options }: TickQueueOptions): Promise<TickQueue> {
  const connections = await connect(options.engine, options.maxConnections ?? 8, options.onError);
  const queue = createTickQueue(connections, name, options);
  return { ...queue, close: () => queue.close().finally(() => connections.close()) };
}

/** Whoever made the connections closes them, after it. */
export function createTickQueue(
  connections: Connections,
  name: string,
  { onError, lockMs = JOB_LOCK_MS }: Pick<TickQueueOptions, 'onError' | 'lockMs'>,
): TickQueue {
  const queue = connections.queue<Tick>(name);
  queue.on('error', onError);
  // A wipe that dies halfway leaves it paused; nobody else pauses it.
  const unpause = async () => {
    if (await queue.isPaused()) await queue.resume();
  };
  return {
    offer: async (tick) => {
      const opts = { jobId: tickJobId(tick), attempts: 1, removeOnComplete: true, removeOnFail: true };
      await queue.addBulk([{ name: JOB, data: tick, opts }]);
    },
    size: async () => {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
      return Object.values(counts).reduce((sum, n) => sum + n, 0);
    },
    wipe: () => queue.obliterate({ force: true }),
    work: ({ concurrency, handle }) => {
      void unpause().catch(onError);
      const worker = connections.worker<Tick>(name, ({ data }) => handle(data), {
        concurrency,
        lockDuration: lockMs,
        stalledInterval: lockMs / 2,
        // It is claimed before it is run: any number of times does no harm.
        maxStalledCount: 1_000,
        runRetryDelay: LOOK_AGAIN_MS,
      });
      worker.on('error', onError);
      worker.on('failed', (_tick, error) => onError(error));
      return { close: (force) => worker.close(force) };
    },
    close: () => queue.close(),
  };
}
