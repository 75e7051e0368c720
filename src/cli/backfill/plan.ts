/** `chandler plan`: what a backfill would ask, what it costs, and when it is done. Spends nothing but a list of coins that is missing. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { readDemand, schedulesOf, setAsideOf } from '../../budget.ts';
import { effectiveLimits } from '../../config.ts';
import { INTERVALS } from '../../core/interval.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import type { Session } from '../../ingest/session.ts';
import { openIngestion } from '../../ingestion.ts';
import { argument, list, parseInterval, parsePositiveInteger, parseQuote } from '../input/options.ts';
import {
  checkCoinChoice,
  eachInterval,
  parseSpan,
  resolveTarget,
  type TargetOptions,
  type TargetsOptions,
} from '../input/target.ts';
import { printJson } from '../output/json.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { PlanReport } from './plan-report.ts';
import { plansAsJson, printPlans } from './plan-total.ts';

export function planCommand(program: Command, context: CommandContext): void {
  targetOptions(
    program
      .command('plan')
      .description(
        'show what a backfill costs before it is run: requests, rows, quota left, when it is done, and the same under every plan',
      ),
  )
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: TargetsOptions & { readonly json?: boolean }) => {
        checkCoinChoice(coins, options);
        for (const one of eachInterval(options)) parseSpan(one, context.clock.now());
        return context.withApp({ schema: 'prepare' }, async (app) => {
          const ingestion = await openIngestion(app, { signal: context.signal });
          try {
            const reports = await makeReports(app, ingestion.session, coins, options, context.signal);
            if (options.json) printJson(context.io.out, plansAsJson(reports));
            else printPlans(context.io.out, reports);
            return EXIT.done;
          } finally {
            await ingestion.close();
          }
        });
      }),
    );
}

/** The options that say what a backfill is about. */
export function targetOptions(command: Command): Command {
  return command
    .argument('[coin...]', 'ids of coins, like btc-bitcoin')
    .option('--top <n>', 'the N best-ranked coins', argument(parsePositiveInteger))
    .option('--all', 'every active coin')
    .option('--start <T>', 'from, always needed: a date (UTC midnight), a date-time with zone, or relative like -30d')
    .option('--end <T>', 'until, exclusive (default: now)')
    .option(
      '--interval <interval>',
      `widths of candles, several with commas: ${INTERVALS.join(', ')} (default: 24h)`,
      list(parseInterval),
    )
    .option('--quote <quote>', 'currency of the prices', argument(parseQuote), 'usd');
}

/** Resolves the target of each interval and counts what it costs. */
export async function makeReports(
  app: App,
  session: Session,
  coins: readonly string[],
  options: TargetsOptions,
  signal: AbortSignal,
): Promise<readonly PlanReport[]> {
  const reports: PlanReport[] = [];
  for (const one of eachInterval(options)) reports.push(await makeReport(app, session, coins, one, signal));
  return reports;
}

async function makeReport(
  app: App,
  session: Session,
  coins: readonly string[],
  options: TargetOptions,
  signal: AbortSignal,
): Promise<PlanReport> {
  const { config, clock, database } = app;
  const { sql } = database;
  const target = await resolveTarget(
    { sql, clock, session, log: app.log, signal, keep: config.keep.candles },
    coins,
    options,
  );
  const wall = session.walls.of(target.interval);
  const now = clock.now();
  const plan = await planBackfill({ sql, target, now, askedSince: now, plan: session.plan, wall });
  const fresh = await readDemand(sql);
  return {
    target,
    plan,
    session,
    wall,
    quota: await session.quota.state(),
    setAside: setAsideOf(schedulesOf(config, session.plan.name, session.limits, fresh)),
    now,
    overrides: overridesOf(config),
    termsOf: (name) => {
      const limits = effectiveLimits(name, { ...config, limits: {} });
      return { limits, setAside: setAsideOf(schedulesOf(config, name, limits, fresh)) };
    },
  };
}

/** The variables that replace what the documents of this account's plan say. */
function overridesOf({ limits, candlesPerRequest }: App['config']): string[] {
  return [
    'perMonth' in limits && 'CHANDLER_MONTHLY_REQUESTS',
    'perDay' in limits && 'CHANDLER_DAILY_REQUESTS',
    'perSecond' in limits && 'CHANDLER_REQUESTS_PER_SECOND',
    candlesPerRequest !== null && 'CHANDLER_CANDLES_PER_REQUEST',
  ].filter((name) => name !== false);
}
