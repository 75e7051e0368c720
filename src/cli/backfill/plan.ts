/** `chandler plan`: what a backfill would cost. Sends no requests, except for a list of coins that is missing or old. */

import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { readScheduledWork, schedulesOf } from '../../budget.ts';
import { effectiveLimits } from '../../config.ts';
import { shellWord } from '../../core/format.ts';
import { type Interval, isCandleInterval, type PriceInterval, widthOf } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { lateUntil } from '../../ingest/chunk/last-day.ts';
import { expectedDepth } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import { averageReservations, reservationsOf } from '../../ingest/schedule/demand.ts';
import type { Session } from '../../ingest/session.ts';
import { withIngestion } from '../../ingestion.ts';
import { checkTarget, intervalsOf, type TargetOptions, targetOptions } from '../input/series-options.ts';
import { resolveTarget } from '../input/target.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';
import { type PlanReport, type PlanReports, plansAsJson } from './plan-report.ts';
import { printPlans } from './plan-text.ts';
import { pricesInstead } from './prices-instead.ts';
import { planTrackedDaily } from './tracked-daily.ts';

export function planCommand(program: Command, context: CommandContext): void {
  const { clock, signal } = context;
  const plan = targetOptions(
    program
      .command('plan')
      .description(
        'show what a backfill would cost: requests, rows, remaining quota and finish time, under your plan and every other plan',
      ),
  );
  // Reports wrong usage before opening the database.
  plan.hook('preAction', (command) => checkTarget(command.args, command.opts<TargetOptions>(), clock.now()));
  const answerWith = (app: App, coins: string[], options: TargetOptions) =>
    withIngestion(app, { signal }, async ({ session }) => {
      const reports = await makeReports(app, session, coins, options, signal);
      return { json: () => plansAsJson(reports), text: (out: Output) => printPlans(out, reports) };
    });
  context.answer(plan, answerWith, { schema: 'prepare' });
}

/** Resolves the target of each interval and computes its cost. */
export async function makeReports(
  app: App,
  session: Session,
  coins: readonly string[],
  options: TargetOptions,
  signal: AbortSignal,
): Promise<PlanReports> {
  const reports: PlanReport[] = [];
  for (const interval of intervalsOf(options)) {
    reports.push(await makeReport(app, session, coins, options, interval, signal));
  }
  return reports;
}

async function makeReport(
  app: App,
  session: Session,
  coins: readonly string[],
  options: TargetOptions,
  interval: Interval,
  signal: AbortSignal,
): Promise<PlanReport> {
  const { config, clock, database } = app;
  const { sql } = database;
  const target = await resolveTarget(
    { sql, clock, session, log: app.log, signal, keep: config.keep.candles },
    coins,
    options,
    interval,
  );
  const now = clock.now();
  const historyLimit = session.historyLimits.of(target.interval);
  const plan = await planBackfill({ sql, target, now, requestedSince: now, plan: session.plan, historyLimit });
  const gone = { ...target, coinIds: target.leftOut };
  const ofLeftOut = await planBackfill({
    sql,
    target: gone,
    now,
    requestedSince: now,
    plan: session.plan,
    historyLimit,
  });
  const lastDay = lastDayOf(expectedDepth(historyLimit), interval, now);
  const givesOnlyLastDay = lastDay !== null;
  const lacksCandles = givesOnlyLastDay || expectedDepth(historyLimit) === 0;
  const isOfCandles = isCandleInterval(target.interval);
  const { historyLimits } = session;
  const prices =
    lacksCandles && isOfCandles
      ? await pricesInstead({ sql, plan: session.plan, now, historyLimits }, target, (width, start) =>
          commandOf(coins, { ...options, start: start ?? options.start! }, width),
        )
      : null;
  const scheduled = await readScheduledWork(app, session);
  const { schedules, demand } = scheduled;
  const { activeIds: coinIds, quote } = target;
  const trackedDaily =
    givesOnlyLastDay && coinIds.length > 0
      ? await planTrackedDaily(app, session, scheduled, { coinIds, quote, tier: tierOf(options) })
      : null;
  return {
    target,
    plan,
    prices,
    trackedDaily,
    lateUntil: lastDay === null || plan.cost.slots === 0 ? null : lateUntil(lastDay, historyLimits.opinions, now),
    // One probe is enough for both, so planning them together takes no second one.
    requestsOfLeftOut: ofLeftOut.cost.requests - (plan.probe && ofLeftOut.probe ? 1 : 0),
    session,
    historyLimit,
    quota: demand.state,
    scheduling: demand.scheduling,
    reserved: reservationsOf(schedules, demand),
    now,
    overrides: overridesOf(config),
    termsOf: (name) => {
      const limits = effectiveLimits(name, { ...config, limits: {} });
      // A service on another plan runs that plan's schedules, and nobody knows yet what the upstream would refuse there.
      const { freshnessPerDay, catalogue, scheduling } = demand;
      const schedules = schedulesOf(config, name, limits, { freshnessPerDay, catalogue });
      return { limits, reserved: averageReservations(schedules, scheduling) };
    },
  };
}

function tierOf({ all, top }: TargetOptions): Tier {
  return all ? 'all' : top === undefined ? 'list' : 'top';
}

/** The command that fetches prices as a replacement for candles, with the same coins and times. */
function commandOf(coins: readonly string[], options: TargetOptions, interval: PriceInterval): string {
  const { top, all, everTop, inactive, start, end, quote } = options;
  return [
    'chandler backfill',
    ...coins,
    ...(top === undefined ? [] : [`--top ${top}`]),
    ...(everTop === undefined ? [] : [`--ever-top ${everTop}`]),
    ...(all ? ['--all'] : []),
    ...(inactive ? ['--inactive'] : []),
    `--start ${shellWord(start!)}`,
    ...(end === undefined ? [] : [`--end ${shellWord(end)}`]),
    ...(quote === 'usd' ? [] : [`--quote ${quote}`]),
    `--series prices --interval ${widthOf(interval)}`,
  ].join(' ');
}

/** The variables that override documented limits of the plan. */
function overridesOf({ limits, candlesPerRequest }: App['config']): string[] {
  return [
    'perMonth' in limits && 'CHANDLER_MONTHLY_REQUESTS',
    'perDay' in limits && 'CHANDLER_DAILY_REQUESTS',
    'perSecond' in limits && 'CHANDLER_REQUESTS_PER_SECOND',
    candlesPerRequest !== null && 'CHANDLER_CANDLES_PER_REQUEST',
  ].filter((name) => name !== false);
}
