/** `chandler quota`: what may still be asked, until when, and who asked what. */
import type { Command } from 'commander';
import { type Budget, readBudget } from '../budget.ts';
import type { Instant } from '../clock.ts';
import type { Quota, QuotaState, SetAside } from '../quota/quota.ts';
import type { Need } from '../quota/set-aside.ts';
import type { CommandContext } from './context.ts';
import { EXIT } from './exit.ts';
import {
  formatCount,
  formatCounted,
  formatDuration,
  formatInstant,
  formatLimit,
  formatRate,
  formatRelative,
} from './format.ts';
import type { Output } from './io.ts';
import { printJson, toIso } from './json.ts';
import { formatTable } from './table.ts';
import { formatMoment, waitingFor } from './waiting.ts';

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
          const setAside = app.setAside();
          const [state, spenders] = await Promise.all([budget.quota.state(), budget.quota.spenders()]);
          if (options.json) printJson(context.io.out, asJson(budget, state, spenders, setAside, app.needs));
          else printQuota(context.io.out, budget, state, spenders, setAside, app.needs);
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

function printQuota(
  out: Output,
  budget: Budget,
  state: QuotaState,
  spenders: Spenders,
  setAside: SetAside,
  needs: readonly Need[],
): void {
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
    `\nLeft is for backfills. Set aside for scheduled work until each reset: ${needs.map(describeNeed).join('; ')}.\n`,
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

/** What each schedule asks for, in words; a name without words stays as it is. */
const NEEDS: Readonly<Record<string, string>> = {
  catalogue: 'the list of coins and their tickers',
  account: 'the account (plan and use)',
};

function describeNeed({ name, requests, everyMs }: Need): string {
  return `${NEEDS[name] ?? name}, ${formatCounted(requests, 'request')} every ${formatDuration(everyMs)}`;
}

function asJson(
  budget: Budget,
  state: QuotaState,
  spenders: Spenders,
  setAside: SetAside,
  needs: readonly Need[],
): unknown {
  const windows = windowsOf(state, setAside).map(({ name, reset, ...w }) => [name, { ...w, reset: toIso(reset) }]);
  const { pace, hold } = state;
  return {
    account: budget.accountId,
    plan: budget.plan,
    planSource: budget.planSource,
    ...Object.fromEntries(windows),
    scheduled: needs.map(({ name, requests, everyMs }) => ({ name, requests, everyMs })),
    requestsPerSecond: { limit: pace.limit, now: pace.now },
    hold: hold === null ? null : { ...hold, until: toIso(hold.until) },
    spenders,
  };
}
