/** `chandler plan`: what a backfill would ask, what it costs, and when it is done. Spends nothing but a list of coins that is missing. */
import type { Command } from 'commander';
import type { App } from '../app.ts';
import { readDemand, schedulesOf, setAsideOf } from '../budget.ts';
import { effectiveLimits } from '../config.ts';
import { INTERVALS } from '../core/interval.ts';
import { planBackfill } from '../ingest/plan.ts';
import type { Session } from '../ingest/session.ts';
import { openIngestion } from '../ingestion.ts';
import type { CommandContext } from './context.ts';
import { EXIT } from './exit.ts';
import { printJson } from './json.ts';
import { argument, parseInterval, parsePositiveInteger, parseQuote } from './options.ts';
import { type PlanReport, planAsJson } from './plan-report.ts';
import { printPlan } from './plan-text.ts';
import { checkCoinChoice, parseSpan, resolveTarget, type TargetOptions } from './target.ts';

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
      context.action(async (coins: string[], options: TargetOptions & { readonly json?: boolean }) => {
        checkCoinChoice(coins, options);
        parseSpan(options, context.clock.now());
        return context.withApp({ schema: 'prepare' }, async (app) => {
          const ingestion = await openIngestion(app, { signal: context.signal });
          try {
            const report = await makeReport(app, ingestion.session, coins, options, context.signal);
            if (options.json) printJson(context.io.out, planAsJson(report));
            else printPlan(context.io.out, report);
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
    .option('--interval <interval>', `width of a candle: ${INTERVALS.join(', ')}`, argument(parseInterval), '24h')
    .option('--quote <quote>', 'currency of the prices', argument(parseQuote), 'usd');
}

/** Resolves the target and counts what it costs. */
export async function makeReport(
  app: App,
  session: Session,
  coins: readonly string[],
  options: TargetOptions,
  signal: AbortSignal,
): Promise<PlanReport> {
  const { config, clock, database } = app;
  const { sql } = database;
  const target = await resolveTarget({ sql, clock, session, signal }, coins, options);
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
