/** `chandler quota`: what may still be asked, until when, and who asked what. */
import type { Command } from 'commander';
import { type Budget, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import { catalogueKindOf, requestsIn, type Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { Quota, QuotaState, SetAside } from '../../quota/quota.ts';
import {
  formatCount,
  formatCounted,
  formatInstant,
  formatLimit,
  formatRate,
  formatRelative,
} from '../output/format.ts';
import { printJson, toIso } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import { formatMoment, waitingFor } from '../output/wait-reasons.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

type Spenders = Awaited<ReturnType<Quota['spenders']>>;

export function quotaCommand(program: Command, context: CommandContext): void {
  program
    .command('quota')
    .description('show what may still be asked of the upstream, until when, and who spent what; asks nothing itself')
    .option('--json', 'print JSON')
    .action(
      context.action(async (options: { json?: boolean }) =>
        context.withApp({ schema: 'require' }, async (app) => {
          const budget = await readBudget(app);
          const [state, spenders] = await Promise.all([budget.quota.state(), budget.quota.spenders()]);
          const setAside = budget.setAside(state.now);
          if (options.json) printJson(context.io.out, asJson(budget, state, spenders, setAside));
          else printQuota(context.io.out, budget, state, spenders, setAside);
          return EXIT.done;
        }),
      ),
    );
}

type Window = {
  readonly name: 'month' | 'day';
  readonly spent: number;
  readonly setAside: number;
  readonly left: number | null;
  readonly limit: number | null;
  readonly reset: Instant;
};

/** `left` is what a backfill may still spend. */
function windowsOf(state: QuotaState, setAside: SetAside): Window[] {
  return (['month', 'day'] as const).map((name) => {
    const { spent, limit, reset } = state[name];
    const left = limit === null ? null : Math.max(0, limit - spent - setAside[name]);
    return { name, spent, setAside: setAside[name], left, limit, reset };
  });
}

function printQuota(out: Output, budget: Budget, state: QuotaState, spenders: Spenders, setAside: SetAside): void {
  const source = { configured: 'as configured', account: 'as the account says', assumed: 'assumed, not asked yet' };
  out.write(`Account ${budget.accountId}, plan ${budget.plan} (${source[budget.planSource]})\n\n`);
  const right = { align: 'right' as const };
  const columns = [
    { title: 'window' },
    ...['spent', 'set aside', 'left', 'limit'].map((title) => ({ title, ...right })),
    { title: 'resets' },
  ];
  const rows = windowsOf(state, setAside).map((w) => [
    w.name,
    formatCount(w.spent),
    formatCount(w.setAside),
    formatLimit(w.left),
    formatLimit(w.limit),
    `${formatInstant(w.reset)} (${formatRelative(w.reset, state.now)})`,
  ]);
  out.write(formatTable(columns, rows, out.columns()));
  out.write(
    `\nLeft is for backfills. Set aside for the schedules until each reset: ${describeNeeds(budget.schedules)}.\n`,
  );
  const { limit, now } = state.pace;
  const slowed =
    limit !== null && now !== null && now < limit
      ? `, now ${formatRate(now)} after answers of "too many requests"`
      : '';
  out.write(`Pace: ${limit === null ? 'unlimited' : `${formatRate(limit)} at most`}${slowed}.\n`);
  if (state.hold !== null) {
    const { until, reason, message } = state.hold;
    out.write(
      `Everybody waits, because ${waitingFor(reason)}, until ${formatMoment(until, state.now)}. It said: ${message}\n`,
    );
  }
  if (spenders.length === 0) return;
  out.write('\nWho spent it\n');
  const names = [{ title: 'for' }, { title: 'class' }, { title: 'today', ...right }, { title: 'this month', ...right }];
  const spent = spenders.map((s) => [s.name, s.class, formatCount(s.day), formatCount(s.month)]);
  out.write(formatTable(names, spent, out.columns()));
}

/** Those that ask the upstream; `chandler schedule` has them all. */
function askingOf(schedules: readonly Schedule[]) {
  return schedules.flatMap((schedule) => {
    const { requests, cadence } = schedule;
    return requests === 0 || cadence === null ? [] : [{ ...schedule, cadence }];
  });
}

function describeNeeds(schedules: readonly Schedule[]): string {
  const asking = askingOf(schedules);
  // The schedules of the catalogue ask now and then: together they are one line, and a number a day.
  const catalogue = asking.filter((schedule) => catalogueKindOf(schedule) !== null);
  const needs = asking
    .filter((schedule) => catalogueKindOf(schedule) === null)
    .map(({ name, requests, cadence }) => `${name}, ${formatCounted(requests, 'request')} at ${cadence.cron}`);
  if (catalogue.length > 0) {
    const perDay = requestsIn(catalogue, A_DAY, A_DAY + DAY);
    needs.push(`the catalogue, ${formatCounted(Math.max(1, perDay), 'request')} a day`);
  }
  return needs.length === 0 ? 'nothing, all of them are off' : needs.join('; ');
}

/** Any one will do. */
const A_DAY = Date.UTC(2024, 0);

function asJson(budget: Budget, state: QuotaState, spenders: Spenders, setAside: SetAside): unknown {
  const windows = windowsOf(state, setAside).map(({ name, reset, ...w }) => [name, { ...w, reset: toIso(reset) }]);
  const { pace, hold } = state;
  return {
    account: budget.accountId,
    plan: budget.plan,
    planSource: budget.planSource,
    ...Object.fromEntries(windows),
    scheduled: askingOf(budget.schedules).map(({ name, requests, cadence }) => ({
      name,
      requests: Math.ceil(requests * 100) / 100,
      cron: cadence.cron,
    })),
    requestsPerSecond: { limit: pace.limit, now: pace.now },
    hold: hold === null ? null : { ...hold, until: toIso(hold.until) },
    spenders,
  };
}
