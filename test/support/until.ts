/** Waits for an event that another session, another process or another part of this process causes. */
import { systemClock } from '../../src/clock.ts';

/** Resolves when `isSo` does to true. The time limit of the test also limits the wait. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await systemClock.sleep(5);
}
