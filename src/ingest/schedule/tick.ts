/** Decides whether a tick of a schedule must still run. All processes use these rules, on the same row of the database. */
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { isLeaseAlive } from '../../store/work/lease.ts';
import type { ScheduleRun } from '../../store/work/schedule-run.ts';

/** The most attempts of one run. */
export const MOST_ATTEMPTS = 4;
/** Waits between two attempts of one run: 15, 30, 60 s. One process runs a schedule at a time, and every attempt may cost requests. */
export const attemptBackoff = createBackoff({ firstMs: 15_000, mostMs: 60_000 });
/** Waits between the runs of a schedule that fails repeatedly, from the second failure on: each run may cost requests. */
const LONGEST_PAUSE_MS = 3_600_000;
const pauseBackoff = createBackoff({ firstMs: 5 * 60_000, mostMs: LONGEST_PAUSE_MS });
/** No hold is longer than a month. */
const LONGEST_WAIT_MS = 32 * 86_400_000;

/**
 * The state of a tick, derived from the latest run of its schedule. `due`: it must run now. `busy`: a run of this schedule is in progress. `later`:
 * it waits until `waitUntil`. `paused`: the schedule failed several times in a row. `over`: this tick or a later one has run.
 */
export function standingOf(
  latest: ScheduleRun | null,
  tick: Instant,
  now: Instant,
): 'due' | 'busy' | 'later' | 'paused' | 'over' {
  if (latest === null) return 'due';
  if (latest.state === 'running' && isLeaseAlive(latest.leaseUntil, now)) return 'busy';
  // The clock was set back. The same hours run again, because the market has changed since.
  if (latest.tick > now + MOST_SKEW_MS) return 'due';
  if (tick > latest.tick) return isAhead(pausedUntil(latest), now, LONGEST_PAUSE_MS) ? 'paused' : 'due';
  if (tick < latest.tick) return 'over';
  switch (latest.state) {
    case 'running':
      // A run that crashes its process must not start again for ever.
      return latest.attempts < MOST_ATTEMPTS ? 'due' : 'over';
    case 'waiting':
    case 'held':
      return isAhead(latest.waitUntil, now, LONGEST_WAIT_MS) ? 'later' : 'due';
    case 'done':
    case 'failed':
    case 'superseded':
      return 'over';
  }
}

/**
 * On a new warehouse all schedules are due at once. A schedule that needs the data of another one then finds nothing, and its next tick may be a day
 * away. So the same tick runs again when there is something to request, up to `MOST_ATTEMPTS` times.
 */
export function mayRunAgain(latest: ScheduleRun | null, tick: Instant): boolean {
  return latest !== null && latest.tick === tick && latest.state === 'done' && latest.attempts < MOST_ATTEMPTS;
}

/** The schedule does not run before this instant, except after a restart; null: it is not paused. */
export function pausedUntil({ state, failures, endedAt }: ScheduleRun): Instant | null {
  if (state !== 'failed' || failures < 2 || endedAt === null) return null;
  return endedAt + pauseBackoff(failures - 2, WHOLE_BOUND);
}

/** Is the instant in the future, and no further away than any wait of this kind? A later instant was recorded before the clock was set back. */
function isAhead(until: Instant | null, now: Instant, most: number): boolean {
  return until !== null && until > now && until <= now + most + MOST_SKEW_MS;
}
