/** `chandler schedule`: what is asked by itself, how often, what that costs of the plan, and how it went last. */
import type { Command } from 'commander';
import { type Budget, checkSchedules, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import {
  type DisabledScheduleWarning,
  disabledScheduleWarnings,
} from '../../ingest/schedule/disabled-schedule-warnings.ts';
import { type Load, loadOf, requestsIn } from '../../ingest/schedule/schedule-plan.ts';
import { pausedUntil } from '../../ingest/schedule/tick.ts';
import { countTrackedSeries } from '../../store/tracking/tracked-series.ts';
import { latestFailures, latestRuns, type ScheduleRun } from '../../store/work/schedule-run.ts';
import { formatCount, formatCounted, formatInstant, formatPercent, formatRelative } from '../output/format.ts';
import { printJson, toIso } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

type Report = {
  readonly budget: Budget;
  readonly now: Instant;
  /** The day and the month in which all of them together ask most. */
  readonly day: Load;
  readonly month: Load;
  readonly lastRuns: ReadonlyMap<string, ScheduleRun>;
  /** Tracked series, and what they lack because a schedule is off. */
  readonly tracked: number;
  readonly lacking: readonly DisabledScheduleWarning[];
  readonly lastFailures: ReadonlyMap<string, ScheduleRun>;
};

export function scheduleCommand(program: Command, context: CommandContext): void {
  program
    .command('schedule')
    .description(
      'show what is asked by itself: how often, what it takes of the plan, last run and next run; asks nothing',
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async (options: { json?: boolean }) =>
        context.withApp({ schema: 'require' }, async (app) => {
          const budget = await readBudget(app);
          const now = app.clock.now();
          checkSchedules(app.config, budget.plan, now);
          const names = budget.schedules.map(({ name }) => name);
          const { sql } = app.database;
          const [runs, failures, tracked] = await Promise.all([
            latestRuns(sql, names),
            latestFailures(sql, names),
            countTrackedSeries(sql),
          ]);
          const report: Report = {
            budget,
            now,
            ...loadOf(budget.schedules, now),
            tracked,
            lacking: disabledScheduleWarnings(budget.schedules, tracked),
            lastRuns: bySchedule(runs),
            lastFailures: bySchedule(failures),
          };
          if (options.json) printJson(context.io.out, asJson(report));
          else printSchedules(context.io.out, report);
          return EXIT.done;
        }),
      ),
    );
}

function bySchedule(runs: readonly ScheduleRun[]): ReadonlyMap<string, ScheduleRun> {
  return new Map(runs.map((run) => [run.schedule, run]));
}

function printSchedules(out: Output, report: Report): void {
  const { budget, now, day, month, lastRuns } = report;
  const { limits, schedules } = budget;
  const right = { align: 'right' as const };
  const rows = schedules.map((schedule) => {
    const { name, cadence, requests, asks } = schedule;
    const asked = requestsIn([schedule], month.from, month.to);
    return [
      name,
      cadence?.cron ?? 'off',
      formatCount(Math.ceil(requests)),
      formatCount(asked),
      limits.perMonth === null || asked === 0 ? '–' : formatPercent(asked, limits.perMonth),
      describeLast(lastRuns.get(name), now),
      cadence === null ? '–' : formatRelative(cadence.next(now), now),
      asks,
    ];
  });
  const columns = [
    { title: 'schedule', isWhole: true },
    { title: 'when (UTC)', isWhole: true },
    ...['a run', 'a month', 'of plan'].map((title) => ({ title, ...right })),
    { title: 'last run', isWhole: true },
    { title: 'next run', isWhole: true },
    { title: 'asks for' },
  ];
  out.write(formatTable(columns, rows, out.columns()));
  out.write(`\n${describeTotal(budget, day, month)}\n`);
  for (const { schedule, consequence } of report.lacking)
    out.write(`${schedule} is off, and series are tracked (${formatCount(report.tracked)}): ${consequence}.\n`);
  for (const { name } of schedules) {
    const text = describeTrouble(lastRuns.get(name), now);
    if (text !== null) out.write(`${name}: ${text}\n`);
  }
}

function describeTotal({ limits, plan }: Budget, day: Load, month: Load): string {
  const part = (asked: number, limit: number | null, name: string) =>
    `${formatCounted(asked, 'request')} in ${name}${limit === null ? '' : `, ${formatPercent(asked, limit)} of ${formatCount(limit)}`}`;
  const days = `a month of ${(month.to - month.from) / DAY} days`;
  const parts = [
    part(month.requests, limits.perMonth, days),
    ...(limits.perDay === null ? [] : [part(day.requests, limits.perDay, 'a day')]),
  ];
  return `Together ${parts.join('; ')} (plan ${plan}). The rest is for candles.`;
}

function describeLast(run: ScheduleRun | undefined, now: Instant): string {
  if (run === undefined) return 'never';
  const words = {
    running: 'running',
    waiting: 'to be repeated',
    held: 'held',
    done: '',
    failed: 'failed',
    overtaken: 'not done',
  };
  const when = formatRelative(run.endedAt ?? run.begunAt, now);
  return words[run.state] === '' ? when : `${words[run.state]}, ${when}`;
}

function describeTrouble(run: ScheduleRun | undefined, now: Instant): string | null {
  if (run === undefined || run.message === null) return null;
  const attempts = formatCounted(run.attempts, 'attempt');
  const until = run.waitUntil === null ? '' : `${formatInstant(run.waitUntil)} (${formatRelative(run.waitUntil, now)})`;
  switch (run.state) {
    case 'held':
      return `waits until ${until}, because ${waitingFor(run.message)}`;
    case 'waiting':
      return `failed and is tried again at ${until}: ${run.message}`;
    case 'failed': {
      const pause = pausedUntil(run);
      const more = run.failures > 1 ? `, as did the ${formatCounted(run.failures - 1, 'run')} before it` : '';
      const when = pause === null || pause <= now ? '' : ` after ${formatInstant(pause)}`;
      return `failed after ${attempts}${more}, and is tried again with its next run${when}: ${run.message}`;
    }
    case 'overtaken':
      return `its next run came before it was done: ${run.message}`;
    case 'running':
    case 'done':
      return null;
  }
}

function asJson({ budget, now, day, month, lastRuns, lastFailures, lacking }: Report): unknown {
  const { accountId, plan, planSource, limits, schedules } = budget;
  const share = (asked: number, limit: number | null) => (limit === null ? null : asked / limit);
  return {
    account: accountId,
    plan,
    planSource,
    limits,
    day: { from: toIso(day.from), requests: day.requests, share: share(day.requests, limits.perDay) },
    month: { from: toIso(month.from), requests: month.requests, share: share(month.requests, limits.perMonth) },
    schedules: schedules.map((schedule) => {
      const { name, asks, cadence, requests, isSet } = schedule;
      const asked = requestsIn([schedule], month.from, month.to);
      const failure = lastFailures.get(name);
      return {
        name,
        asks,
        cron: cadence?.cron ?? null,
        source: isSet ? 'configured' : 'plan',
        requestsPerRun: Math.ceil(requests * 100) / 100,
        requestsPerDay: requestsIn([schedule], day.from, day.to),
        requestsPerMonth: asked,
        shareOfMonth: share(asked, limits.perMonth),
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
  const { state, attempts, message, owner } = run;
  return {
    tick: toIso(run.tick),
    state,
    attempts,
    begunAt: toIso(run.begunAt),
    endedAt: toIso(run.endedAt),
    waitUntil: toIso(run.waitUntil),
    message,
    owner,
  };
}
