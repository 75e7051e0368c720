/** Whether any service runs the schedules of an account, and which schedules. Nothing is reserved for requests that no service will send. */
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import type { RunningSchedules } from '../../store/work/instance.ts';
import { type Cadences, type Schedule, ticksPerDay } from './schedule-plan.ts';
import { SCHEDULE_NAMES } from './schedules.ts';

/**
 * `running`: a scheduler runs now, with these cadences; the configuration of this process does not matter. `stopped`: none runs, but one did within
 * the last day. `none`: none ran within the last day, or ever. `seenAt`: when one last ran.
 */
export type Scheduling =
  | { readonly kind: 'running'; readonly cadences: Cadences }
  | { readonly kind: 'stopped'; readonly seenAt: Instant }
  | { readonly kind: 'none'; readonly seenAt: Instant | null };

/**
 * How long the reservation outlives the last scheduler: enough for a restart, an upgrade, or a crash at night. An operator who stops the service for
 * longer does not want its requests.
 */
export const RESERVED_FOR_MS = DAY;

export function schedulingOf({ running, seenAt }: RunningSchedules, now: Instant): Scheduling {
  if (running.length > 0) return { kind: 'running', cadences: mostFrequent(running) };
  // A clock that was set back must not make this longer.
  const isLately = seenAt !== null && Math.abs(now - seenAt) <= RESERVED_FOR_MS;
  return isLately ? { kind: 'stopped', seenAt } : { kind: 'none', seenAt };
}

/** Every scheduler offers its own ticks. If several schedulers run a schedule at different cadences, the cadence with the most ticks counts. */
function mostFrequent(running: RunningSchedules['running']): Cadences {
  const frequency = (cron: string) => ticksPerDay(cron);
  return Object.fromEntries(
    SCHEDULE_NAMES.flatMap((name) => {
      const crons = running.flatMap((schedules) => schedules[name] ?? []);
      const [most] = crons.sort((a, b) => frequency(b) - frequency(a));
      return most === undefined ? [] : [[name, most]];
    }),
  );
}

/** The cadences that a scheduler announces. Schedules that are off are left out. */
export function cadencesOf(schedules: readonly Schedule[]): Cadences {
  return Object.fromEntries(schedules.flatMap(({ name, cadence }) => (cadence === null ? [] : [[name, cadence.cron]])));
}
