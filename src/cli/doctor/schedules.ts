/** Checks the schedules: whether the plan has room for them, and whether their last runs succeeded. */
import type { App } from '../../app.ts';
import { checkSchedules, readBudget } from '../../budget.ts';
import { formatCount, formatCounted, formatPercent, formatRelative } from '../../core/format.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { disabledScheduleWarnings } from '../../ingest/schedule/disabled-schedule-warnings.ts';
import { loadOf, scheduleVariable } from '../../ingest/schedule/schedule-plan.ts';
import { countTrackedSeries } from '../../store/tracking/tracked-series.ts';
import { latestRuns } from '../../store/work/schedule-run.ts';
import { type Check, failWith, ok, warn } from './check.ts';

export async function checkScheduled(app: App): Promise<Check[]> {
  const { plan, limits, schedules } = await readBudget(app);
  const now = app.clock.now();
  try {
    checkSchedules(app.config, plan, now);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [failWith('schedules', error.message)];
  }
  const { requests } = loadOf(schedules, now).month;
  const share = limits.perMonth === null ? '' : `, ${formatPercent(requests, limits.perMonth)} of the plan`;
  const runs = await latestRuns(
    app.database.sql,
    schedules.map(({ name }) => name),
  );
  const tracked = await countTrackedSeries(app.database.sql);
  const failed = runs.filter(({ state }) => state === 'failed');
  return [
    ok('schedules', `${formatCounted(requests, 'request')} a month${share}`),
    ...disabledScheduleWarnings(schedules, tracked).map(({ schedule, consequence }) =>
      warn(
        `schedule ${schedule}`,
        `it is off, which affects ${formatCount(tracked)} tracked series: ${consequence}`,
        `unset ${scheduleVariable(schedule)}, or stop tracking those series (chandler track remove)`,
      ),
    ),
    ...failed.map(({ schedule, endedAt, begunAt, message }) =>
      warn(
        `schedule ${schedule}`,
        `its last run failed ${formatRelative(endedAt ?? begunAt, now)}: ${message}`,
        'its next run tries again; chandler schedule shows when',
      ),
    ),
  ];
}
