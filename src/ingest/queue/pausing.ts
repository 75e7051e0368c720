/** A worker that could not get a job asks again a little later. */
import type { BackendFactory, IQueueBackend } from 'bullmq';
import { systemClock } from '../../clock.ts';

/** How soon it asks again. */
const PAUSE_MS = 500;

/**
 * By itself, BullMQ makes no pause when it asks for a job and a server that answers refuses it: a database that is read-only, or has no room; a
 * Redis whose memory is full. It then asks again and again, and no timer of the process fires any more.
 */
export function pausing<B extends IQueueBackend, C>(create: BackendFactory<B, C>): BackendFactory<B, C> {
  return (...args) => {
    const backend = create(...args);
    const take: IQueueBackend['moveToActive'] = backend.moveToActive.bind(backend);
    backend.moveToActive = (...job: Parameters<typeof take>) =>
      take(...job).catch(async (error: unknown) => {
        await systemClock.sleep(PAUSE_MS);
        throw error;
      });
    return backend;
  };
}
