/** Waiting for an event: something that another session of the database, another process or another part of this one does. */
import { systemClock } from '../../src/clock.ts';

/** Resolves when `isSo` does to true; the time limit of the test is that of the wait. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await systemClock.sleep(5);
}
