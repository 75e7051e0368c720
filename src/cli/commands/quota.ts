/** `chandler quota`: the remaining quota, when it resets, and what used it. */
import type { Command } from 'commander';
import { describeRate, PLAN_SOURCES } from '../../background/dashboard/quota-report.ts';
import { describeHoles, type HolesReport, holesAsJson, readHolesReport } from '../../background/operator/holes.ts';
import { describeScheduling, schedulingAsJson } from '../../background/operator/scheduling.ts';
import { readSpenders, type Spender } from '../../background/operator/spenders.ts';
import { formatMoment, waitingFor } from '../../background/operator/wait-reasons.ts';
import { type Budget, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatLimit, withIso } from '../../core/format.ts';
import { DAY } from '../../core/interval.ts';
import { catalogueKindOf, requestsIn, type Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import { number, printTable, text } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';

type Report = {
  readonly budget: Budget;
  readonly state: QuotaState;
  /** The largest spender of today first. */
  readonly spenders: readonly Spender[];
  readonly holes: HolesReport;
};

export function quotaCommand(program: Command, context: CommandContext): void {
  const quota = program
    .command('quota')
    .description('show the remaining quota, when it resets, and who used it; sends no requests');
  context.answer(quota, async (app) => {
    const budget = await readBudget(app);
    const [state, spenders] = await Promise.all([budget.quota.state(), readSpenders(app, budget.quota)]);
    const holes = await readHolesReport(app, budget);
    const report = { budget, state, spenders, holes };
    return { json: () => asJson(report), text: (out) => printQuota(out, report) };
  });
}

type Window = {
  readonly name: 'month' | 'day';
  readonly spent: number;
  readonly reserved: number;
  /** Requests that a backfill may still send. */
  readonly left: number | null;
  readonly limit: number | null;
  readonly reset: Instant;
};

function windowsOf({ budget, state }: Report): Window[] {
  const reservations: Reserved = budget.reserved(state.now);
  return (['month', 'day'] as const).map((name) => {
    const { spent, limit, reset } = state[name];
    const reserved = reservations[name];
    const left = limit === null ? null : Math.max(0, limit - spent - reserved);
    return { name, spent, reserved, left, limit, reset };
  });
}

function printQuota(out: Output, report: Report): void {
  const { budget, state, spenders, holes } = report;
  out.write(`Account ${budget.accountId}, plan ${budget.plan} (${PLAN_SOURCES[budget.planSource]})\n\n`);
  printTable(out, windowsOf(report), [
    text('window', (w) => w.name),
    number('spent', (w) => w.spent),
    number('reserved', (w) => w.reserved),
    number('left', (w) => formatLimit(w.left)),
    number('limit', (w) => formatLimit(w.limit)),
    text('resets', (w) => formatMoment(w.reset, state.now)),
  ]);
  out.write('\nBackfills may use the requests that are left. ');
  const why = describeScheduling(budget.scheduling, state.now);
  if (budget.scheduling.kind !== 'none')
    out.write(`Reserved for the schedules until each reset: ${describeNeeds(budget.schedules)}.\n`);
  if (why !== null) out.write(`${why}\n`);
  out.write(`${describeRate(state)}\n`);
  out.write(`${describeHoles(holes, state.now)}\n`);
  if (state.hold !== null) {
    const { until, reason, message } = state.hold;
    out.write(
      `All requests wait until ${formatMoment(until, state.now)}: ${waitingFor(reason)}. The upstream said: ${message}\n`,
    );
  }
  if (spenders.length === 0) return;
  out.write('\nUsed by\n');
  printTable(out, spenders, [
    text('for', (s) => s.name),
    text('class', (s) => s.class),
    number('today', (s) => s.day),
    number('this month', (s) => s.month),
    text('what', (s) => s.subject),
  ]);
}

/** The schedules that send requests; `chandler schedule` shows all of them. */
function requestingOf(schedules: readonly Schedule[]) {
  return schedules.flatMap((schedule) => {
    const { requests, cadence } = schedule;
    return requests === 0 || cadence === null ? [] : [{ ...schedule, cadence }];
  });
}

function describeNeeds(schedules: readonly Schedule[]): string {
  const requesting = requestingOf(schedules);
  // The schedules of the catalogue send few requests, so they share one entry, with a number per day.
  const catalogue = requesting.filter((schedule) => catalogueKindOf(schedule) !== null);
  const needs = requesting
    .filter((schedule) => catalogueKindOf(schedule) === null)
    .map(({ name, requests, cadence }) => `${name}, ${formatCounted(requests, 'request')} at ${cadence.cron}`);
  if (catalogue.length > 0) {
    const perDay = requestsIn(catalogue, A_DAY, A_DAY + DAY);
    needs.push(`the catalogue, ${formatCounted(Math.max(1, perDay), 'request')} a day`);
  }
  return needs.length === 0 ? 'nothing: every schedule is off or needs no requests' : needs.join('; ');
}

/** Every day gives the same number. */
const A_DAY = Date.UTC(2024, 0);

function asJson(report: Report): unknown {
  const { budget, state, spenders } = report;
  const { rate, hold } = state;
  return {
    account: budget.accountId,
    plan: budget.plan,
    planSource: budget.planSource,
    ...Object.fromEntries(windowsOf(report).map(({ name, ...window }) => [name, withIso(window, 'reset')])),
    scheduling: schedulingAsJson(budget.scheduling),
    scheduled: requestingOf(budget.schedules).map(({ name, requests, cadence }) => ({
      name,
      requests: Math.ceil(requests * 100) / 100,
      cron: cadence.cron,
    })),
    requestsPerSecond: { limit: rate.limit, now: rate.now },
    holes: holesAsJson(report.holes),
    hold: hold === null ? null : withIso(hold, 'until'),
    spenders,
  };
}
