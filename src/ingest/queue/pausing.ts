/** Makes a worker pause after it could not get a job. */
import type { BackendFactory, IQueueBackend } from 'bullmq';
import { systemClock } from '../../clock.ts';

/** How long the worker pauses. */
const PAUSE_MS = 500;

/**
 * BullMQ alone does not pause when it requests a job and a reachable server refuses: a database that is read-only or full, or a Redis whose memory is
 * full. It would request jobs without a pause, and no timer of the process would fire any more.
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
