/** `chandler schedule`: the schedules, how often each one runs, its share of the plan, and how its last run went. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { describeHoles, type HolesReport, holesAsJson, readHolesReport } from '../../background/operator/holes.ts';
import { describeLast, describeProblem } from '../../background/operator/schedule-runs.ts';
import { describeScheduling, schedulingAsJson } from '../../background/operator/scheduling.ts';
import { type Budget, checkSchedules, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatRelative, formatShare, toIso, withIso } from '../../core/format.ts';
import { DAY } from '../../core/interval.ts';
import {
  type DisabledScheduleWarning,
  disabledScheduleWarnings,
  type Load,
  loadOf,
  requestsIn,
} from '../../ingest/schedule/schedule-plan.ts';
import { countTrackedSeries } from '../../store/tracking/tracked-series.ts';
import { latestFailures, latestRuns, type ScheduleRun } from '../../store/work/schedule-run.ts';
import { type BackfillRow, readBackfills } from '../../views/backfills/backfills.ts';
import { type HeldLock, lockSentence, readHeldLock } from '../../views/operations/blocking-sessions.ts';
import { describeNext, nextRuns } from '../output/now.ts';
import { number, printable, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';

type Report = {
  /** A lock that another session holds and Chandler needs. Null when there is none. */
  readonly lock: HeldLock | null;
  /** The open backfills. */
  readonly backfills: readonly BackfillRow[];
  readonly budget: Budget;
  readonly now: Instant;
  /** The day and the month in which the schedules together send the most requests. */
  readonly day: Load;
  readonly month: Load;
  readonly lastRuns: ReadonlyMap<string, ScheduleRun>;
  readonly lastFailures: ReadonlyMap<string, ScheduleRun>;
  readonly tracked: number;
  readonly holes: HolesReport;
  /** What the tracked series miss because a schedule is off. */
  readonly lacking: readonly DisabledScheduleWarning[];
};

export function scheduleCommand(program: Command, context: CommandContext): void {
  const schedule = program
    .command('schedule')
    .description(
      'show the schedules: how often each one runs, its share of the plan, its last and its next run; sends no requests',
    );
  context.answer(schedule, async (app) => {
    const report = await readReport(app);
    return { json: () => asJson(report), text: (out) => printSchedules(out, report) };
  });
}

async function readReport(app: App): Promise<Report> {
  const budget = await readBudget(app);
  const now = app.clock.now();
  // Services run the schedules of their own configuration, and have checked these.
  if (budget.scheduling.kind !== 'running') checkSchedules(app.config, budget.plan, now);
  const names = budget.schedules.map(({ name }) => name);
  const { sql } = app.database;
  const lock = await readHeldLock(sql, now);
  const [runs, failures, tracked, holes, backfills] = await Promise.all([
    latestRuns(sql, names),
    latestFailures(sql, names),
    countTrackedSeries(sql),
    readHolesReport(app, budget),
    readBackfills(sql, { all: false }),
  ]);
  return {
    lock,
    backfills,
    budget,
    now,
    ...loadOf(budget.schedules, now),
    tracked,
    holes,
    lacking: disabledScheduleWarnings(budget.schedules, tracked),
    lastRuns: bySchedule(runs),
    lastFailures: bySchedule(failures),
  };
}

function bySchedule(runs: readonly ScheduleRun[]): ReadonlyMap<string, ScheduleRun> {
  return new Map(runs.map((run) => [run.schedule, run]));
}

function printSchedules(out: Output, report: Report): void {
  const { budget, now, day, month, lastRuns } = report;
  const { perMonth } = budget.limits;
  const rows = budget.schedules.map((schedule) => ({
    ...schedule,
    monthly: requestsIn([schedule], month.from, month.to),
  }));
  printTable(out, rows, [
    whole('schedule', ({ name }) => name),
    whole('when (UTC)', ({ cadence }) => cadence?.cron ?? 'off'),
    number('per run', ({ requests }) => Math.ceil(requests)),
    number('per month', ({ monthly }) => monthly),
    number('of plan', ({ monthly }) => (perMonth === null || monthly === 0 ? null : formatShare(monthly, perMonth))),
    whole('last run', ({ name }) => describeLast(lastRuns.get(name), now)),
    whole('next run', ({ cadence }) => (cadence === null ? null : formatRelative(cadence.next(now), now))),
    text('fetches', ({ fetches }) => fetches),
  ]);
  out.write(
    `\n${describeNext({ next: nextRuns(budget, now), backfills: report.backfills, isLocked: report.lock !== null }, now)}\n`,
  );
  if (report.lock !== null)
    out.write(`${printable(lockSentence(report.lock))}
`);
  out.write(`${describeTotal(budget, day, month)}\n`);
  const why = describeScheduling(budget.scheduling, now);
  if (why !== null) out.write(`${why}\n`);
  out.write(`${describeHoles(report.holes, now)}\n`);
  for (const { schedule, consequence } of report.lacking) {
    out.write(`${schedule} is off, which affects ${formatCount(report.tracked)} tracked series: ${consequence}.\n`);
  }
  for (const { name } of budget.schedules) {
    const problem = describeProblem(lastRuns.get(name), now);
    if (problem !== null) out.write(`${name}: ${problem}\n`);
  }
}

function describeTotal({ limits, plan }: Budget, day: Load, month: Load): string {
  const part = (requests: number, limit: number | null, name: string) => {
    const share = limit === null ? '' : `, ${formatShare(requests, limit)} of ${formatCount(limit)}`;
    return `${formatCounted(requests, 'request')} in ${name}${share}`;
  };
  const parts = [
    part(month.requests, limits.perMonth, `a month of ${(month.to - month.from) / DAY} days`),
    ...(limits.perDay === null ? [] : [part(day.requests, limits.perDay, 'a day')]),
  ];
  const isOver = (requests: number, limit: number | null) => limit !== null && requests > limit;
  const follows =
    isOver(month.requests, limits.perMonth) || isOver(day.requests, limits.perDay)
      ? 'The plan allows fewer: at its next run, the schedule freshness lengthens the ages of tracked series (chandler track list).'
      : 'The rest is available for candles and prices.';
  return `Total: ${parts.join('; ')} (plan ${plan}). ${follows}`;
}

function asJson({ budget, now, day, month, lastRuns, lastFailures, lacking, holes }: Report): unknown {
  const { accountId, plan, planSource, limits, schedules } = budget;
  const share = (requests: number, limit: number | null) => (limit === null ? null : requests / limit);
  return {
    account: accountId,
    plan,
    planSource,
    limits,
    day: { from: toIso(day.from), requests: day.requests, share: share(day.requests, limits.perDay) },
    month: { from: toIso(month.from), requests: month.requests, share: share(month.requests, limits.perMonth) },
    scheduling: schedulingAsJson(budget.scheduling),
    holes: holesAsJson(holes),
    schedules: schedules.map((schedule) => {
      const { name, fetches, cadence, requests, isSet } = schedule;
      const monthly = requestsIn([schedule], month.from, month.to);
      const failure = lastFailures.get(name);
      return {
        name,
        fetches,
        cron: cadence?.cron ?? null,
        source: isSet ? 'configured' : 'plan',
        requestsPerRun: Math.ceil(requests * 100) / 100,
        requestsPerDay: requestsIn([schedule], day.from, day.to),
        requestsPerMonth: monthly,
        shareOfMonth: share(monthly, limits.perMonth),
        lastRun: runAsJson(lastRuns.get(name)),
        lastFailure: failure === undefined ? null : { tick: toIso(failure.tick), message: failure.message },
        nextRun: cadence === null ? null : toIso(cadence.next(now)),
        warning: lacking.find(({ schedule }) => schedule === name)?.consequence ?? null,
      };
    }),
  };
}

function runAsJson(run: ScheduleRun | undefined): unknown {
  if (run === undefined) return null;
  const { tick, state, attempts, begunAt, endedAt, waitUntil, message, owner } = run;
  const times = withIso({ tick, begunAt, endedAt, waitUntil }, 'tick', 'begunAt', 'endedAt', 'waitUntil');
  return { ...times, state, attempts, message, owner };
}
