/** A queue with an engine of its own. */
import type { ChunkQueue, QueueOptions } from '../../src/ingest/queue/chunk-queue.ts';
import { openQueueHost } from '../../src/ingest/queue/chunk-queue.ts';
import type { TickQueue } from '../../src/ingest/queue/tick-queue.ts';

type Options = QueueOptions & { readonly name?: string };

/** @throws when the engine cannot be reached. */
export async function openChunkQueue({ name = 'chunks', ...options }: Options): Promise<ChunkQueue> {
  const host = await openQueueHost(options);
  const queue = host.open(name);
  return { ...queue, close: () => queue.close().finally(() => host.close()) };
}

/** @throws when the engine cannot be reached. */
export async function openTickQueue({ name = 'ticks', ...options }: Options): Promise<TickQueue> {
  const host = await openQueueHost(options);
  const queue = host.openTicks(name);
  return { ...queue, close: () => queue.close().finally(() => host.close()) };
}
