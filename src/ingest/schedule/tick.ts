/** A tick of a schedule, and whether it is still to be run: what all processes that tick go by, and the database decides. */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { isLeaseAlive } from '../../store/work/lease.ts';
import type { ScheduleRun } from '../../store/work/schedule-run.ts';

/** How often one run is tried. */
export const MOST_ATTEMPTS = 4;
/** Between two attempts of one run: 15, 30, 60 s. One process runs a schedule at a time, and every attempt may cost requests. */
export const attemptBackoff = createBackoff({ firstMs: 15_000, mostMs: 60_000 });
/** Between the runs of a schedule that fails run after run, from the second failure on: each run may cost requests. */
const LONGEST_PAUSE_MS = 3_600_000;
const pauseBackoff = createBackoff({ firstMs: 5 * 60_000, mostMs: LONGEST_PAUSE_MS });
/** No hold is longer than a month. */
const LONGEST_WAIT_MS = 32 * 86_400_000;

/**
 * Where a tick stands, by the latest run of its schedule. `due`: to be run now. `busy`: a run of this schedule is under way.
 * `later`: it waits, until `waitUntil`. `paused`: it failed too often of late. `over`: it was run, or a later one was.
 */
export function standingOf(
  latest: ScheduleRun | null,
  tick: Instant,
  now: Instant,
): 'due' | 'busy' | 'later' | 'paused' | 'over' {
  if (latest === null) return 'due';
  if (latest.state === 'running' && isLeaseAlive(latest.leaseUntil, now)) return 'busy';
  // The clock was set back: what is lived through again is run again, because the market has gone on.
  if (latest.tick > now + MOST_SKEW_MS) return 'due';
  if (tick > latest.tick) return isAhead(pausedUntil(latest), now, LONGEST_PAUSE_MS) ? 'paused' : 'due';
  if (tick < latest.tick) return 'over';
  switch (latest.state) {
    case 'running':
      // A run that ends its process is not begun for ever.
      return latest.attempts < MOST_ATTEMPTS ? 'due' : 'over';
    case 'waiting':
    case 'held':
      return isAhead(latest.waitUntil, now, LONGEST_WAIT_MS) ? 'later' : 'due';
    case 'done':
    case 'failed':
    case 'overtaken':
      return 'over';
  }
}

/**
 * On a new warehouse all schedules are due at once, also those that ask about what others bring: they find nothing, and their next
 * tick may be a day away. So the tick is run again when there is something; not for ever, should that come to nothing again.
 */
export function mayRunAgain(latest: ScheduleRun | null, tick: Instant): boolean {
  return latest !== null && latest.tick === tick && latest.state === 'done' && latest.attempts < MOST_ATTEMPTS;
}

/** No run before this, unless somebody has started us anew; null: none is waited for. */
export function pausedUntil({ state, failures, endedAt }: ScheduleRun): Instant | null {
  if (state !== 'failed' || failures < 2 || endedAt === null) return null;
  return endedAt + pauseBackoff(failures - 2, WHOLE_BOUND);
}

/** Still to come, and not further away than it can have been meant: the clock may have been set back since. */
function isAhead(until: Instant | null, now: Instant, most: number): boolean {
  return until !== null && until > now && until <= now + most + MOST_SKEW_MS;
}
