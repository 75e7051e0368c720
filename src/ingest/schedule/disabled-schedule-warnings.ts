/** Schedules that are off although series are tracked: what then becomes of these, for who may not have meant it. */
import type { Schedule } from './schedule-plan.ts';

const WITHOUT: Readonly<Partial<Record<Schedule['name'], string>>> = {
  freshness: 'nothing of them is asked any more, and they only grow older',
  coins: '--top no longer follows the ranking, and nobody notices coins that are new, inactive or renamed',
  gaps: 'what they miss of their past is not fetched',
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
