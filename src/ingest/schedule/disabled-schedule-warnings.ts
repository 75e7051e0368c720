/** Warnings about schedules that are off although series are tracked: what happens to these series then. */
import type { Schedule } from './schedule-plan.ts';

const WITHOUT: Readonly<Partial<Record<Schedule['name'], string>>> = {
  freshness: 'they are no longer refreshed',
  coins: '--top no longer follows the ranking, and new, inactive or renamed coins are not noticed',
  gaps: 'gaps in their past are not fetched',
};

export type DisabledScheduleWarning = { readonly schedule: Schedule['name']; readonly consequence: string };

export function disabledScheduleWarnings(
  schedules: readonly Schedule[],
  trackedSeries: number,
): readonly DisabledScheduleWarning[] {
  if (trackedSeries === 0) return [];
  return schedules.flatMap(({ name, cadence }) => {
    const consequence = WITHOUT[name];
    return cadence !== null || consequence === undefined ? [] : [{ schedule: name, consequence }];
  });
}
