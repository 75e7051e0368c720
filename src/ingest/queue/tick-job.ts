/** A tick of a schedule as the queue carries it. */
import type { Instant } from '../../clock.ts';

/**
 * The job of a tick. `anew`: of a process that has just started, perhaps with what was wrong put right. `first`: there is something
 * to ask about that was not there when the tick was run, and nothing of its kind was ever asked.
 */
export type Tick = {
  readonly schedule: string;
  readonly tick: Instant;
  readonly anew?: boolean;
  readonly first?: boolean;
};

/** The same whoever ticks: the queue refuses a second job of the same id while the first lives. */
export function tickJobId({ schedule, tick }: Tick): string {
  return `${schedule}-${tick / 1000}`;
}
