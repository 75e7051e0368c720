/** `chandler backfill`: shows the plan, asks for confirmation when it is large, shows progress, and reports. Safe to kill at any time. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { formatBytes, formatCount, formatCounted } from '../../core/format.ts';
import { describeInterval, isCandleInterval, settledUntil } from '../../core/interval.ts';
import type { Ended } from '../../ingest/backfill/verdict.ts';
import { expectedDepth } from '../../ingest/limits/history-limit.ts';
import { lastDayOf } from '../../ingest/limits/last-day.ts';
import { refreshForAbsences } from '../../ingest/snapshot/coin-list.ts';
import { type Ingestion, withIngestion } from '../../ingestion.ts';
import { abandonExpired, abandonRunsOf, runningOwners } from '../../store/backfill/backfill.ts';
import { rollUp } from '../../store/candle/rollup.ts';
import { wantSeries } from '../../store/candle/series.ts';
import { compactKeys } from '../../store/upkeep/compact.ts';
import { readRemaining } from '../../views/operations/remaining-slots.ts';
import { canAsk, confirm } from '../input/confirm.ts';
import { checkTarget } from '../input/series-options.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { printJson } from '../shell/json.ts';
import { isGone } from '../shell/owner.ts';
import { type BackfillCommandOptions, backfillOptions, CONFIRM_ABOVE, checkDetached } from './backfill-options.ts';
import {
  type BackfillReport,
  backfillsAsJson,
  countsOf,
  makeBackfillReport,
  nullWithoutDatabase,
} from './backfill-report.ts';
import { printBackfillReport, printBackfillTotal } from './backfill-text.ts';
import { detachBackfills } from './detach.ts';
import { exitOf } from './exit-of.ts';
import { makeReports } from './plan.ts';
import { mostRequests, type PlanReport, type PlanReports, plansAsJson } from './plan-report.ts';
import { printPlans } from './plan-text.ts';
import { runWithProgress } from './run-with-progress.ts';

/** Enough for hundreds of years of hourly candles. A smaller backfill must not wait until all the others are rolled up. */
const MOST_MS_FOR_ROLLUPS = 10_000;

export function backfillCommand(program: Command, context: CommandContext): void {
  backfillOptions(
    program
      .command('backfill')
      .description(
        'fetch missing candles, or prices: shows the cost, then the progress, then a report; you may repeat it at any time, as it requests only what is still missing',
      ),
  ).action(
    context.action(async (coins: string[], options: BackfillCommandOptions, command: Command) => {
      checkTarget(coins, options, context.clock.now());
      checkDetached(options, (name) => command.getOptionValueSource(name) === 'cli');
      return context.withApp({ schema: 'prepare', handlesInterrupt: true, changes: !options.dryRun }, (app) =>
        backfill(app, context, coins, options),
      );
    }),
  );
}

/** `chandler demo` uses it as well. */
export async function backfill(
  app: App,
  context: CommandContext,
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<ExitCode> {
  const { io, signal } = context;
  return withIngestion(app, { signal, withQueue: !options.dryRun && !options.detach }, async (ingestion) => {
    const reports = await makeReports(app, ingestion.session, coins, options, signal);
    if (options.json && options.dryRun) printJson(io.out, plansAsJson(reports));
    if (!options.json) printPlans(io.out, reports, options);
    if (options.dryRun) return EXIT.done;
    const due = reports.filter(({ plan }) => plan.coinsWithGaps > 0);
    const others = reports.filter((report) => !due.includes(report));
    for (const { target } of others) await wantSeries(app.database.sql, { ...target, priority: 0 });
    const isAgreed = due.length > 0 && (await agreed(context, due, options));
    if (!isAgreed) {
      const code = due.length === 0 ? exitOf(await endedWithoutRun(app, others)) : EXIT.stoppedEarly;
      if (options.json) printJson(io.out, { plan: plansAsJson(reports), backfill: null, exitCode: code });
      if (due.length > 0) io.err.write('No requests were sent.\n');
      return code;
    }
    if (options.detach) {
      await detachBackfills(app, io.out, { reports, due }, coins, options);
      return EXIT.done;
    }
    return runAll(app, context, ingestion, { reports, due, others }, coins, options);
  });
}

/** Runs the intervals one after the other, and stops after one that ends early. @throws UsageError when the upstream refuses everything */
async function runAll(
  app: App,
  context: CommandContext,
  ingestion: Ingestion,
  { reports, due, others }: { readonly reports: PlanReports; readonly due: PlanReports; readonly others: PlanReports },
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<ExitCode> {
  const { io, signal } = context;
  const { session } = ingestion;
  await clearLeftovers(app, ingestion);
  const list = await refreshForAbsences({
    sendRequest: session.sendRequest,
    sql: app.database.sql,
    clock: app.clock,
    signal,
  });
  if (list.kind === 'failed') io.err.write(`${list.message}; empty slots remain unconfirmed\n`);
  const results: BackfillReport[] = [];
  for (const planned of due) {
    const { interval } = planned.target;
    // The earlier intervals have used part of the quota.
    const quota = results.length === 0 ? planned.quota : await session.quota.state();
    const report = results.length === 0 ? planned : { ...planned, now: app.clock.now(), quota };
    if (due.length > 1) io.err.write(`${describeInterval(interval)}\n`);
    const run = await runWithProgress(app, context, ingestion, report, coins, options);
    const result = await makeBackfillReport(app, report, run);
    // Nothing was stored, so there is nothing to report.
    const isFutile = run.end.kind === 'configurationError' && countsOf(result).stored === 0 && results.length === 0;
    if (isFutile) throw new UsageError(run.end.message);
    results.push(result);
    if (!options.json) {
      if (due.length > 1) io.out.write(`\n${describeInterval(interval)}:\n`);
      printBackfillReport(io.out, result, app.clock.now());
    }
    if (run.end.kind !== 'done') break;
    await compact(app, context, report);
    await rollUpCandles(app, context, report);
  }
  const notStarted = due.slice(results.length);
  const code = exitOf([...results.map(({ run }) => run), ...(await endedWithoutRun(app, others))]);
  if (options.json) {
    const backfill = backfillsAsJson(results, notStarted);
    printJson(io.out, { plan: plansAsJson(reports), backfill, exitCode: code });
  } else if (due.length > 1) printBackfillTotal(io.out, results, notStarted);
  const { end } = results.at(-1)!.run;
  if (end.kind === 'configurationError') throw new UsageError(end.message);
  return code;
}

/** Intervals for which no request can be sent now. Some slots may be left all the same. */
function endedWithoutRun({ database: { sql } }: App, reports: readonly PlanReport[]): Promise<Ended[]> {
  return Promise.all(
    reports.map(async ({ target, now, historyLimit }) => ({
      end: { kind: 'done' } as const,
      left: await nullWithoutDatabase(
        readRemaining(sql, {
          ...target,
          settledUntil: settledUntil(now, target.interval),
          openFrom: lastDayOf(expectedDepth(historyLimit), target.interval, now)?.to ?? null,
          failed: [],
        }),
      ),
    })),
  );
}

/** No result depends on it: an index that is not rebuilt only takes more room. */
async function compact({ database, log }: App, { signal }: CommandContext, { target }: PlanReport): Promise<void> {
  const { interval } = target;
  if (!isCandleInterval(interval)) return;
  const { partitions, bytesSaved } = await compactKeys(database.sql, interval, signal).catch((error: unknown) => {
    log.debug({ err: error }, 'could not rebuild the indexes of the candles');
    return { partitions: 0, bytesSaved: 0 };
  });
  if (partitions === 0) return;
  log.info(`rebuilt the indexes of ${formatCounted(partitions, 'partition')}; saved ${formatBytes(bytesSaved)}`);
}

/** Rolls up candles, so that long spans are fast to serve at once. The next backfill or the service rolls up the rest. */
async function rollUpCandles(
  { database, log }: App,
  { signal }: CommandContext,
  { target: { coinIds, quote, interval } }: PlanReport,
): Promise<void> {
  if (!isCandleInterval(interval)) return;
  await rollUp(database.sql, { signal, of: { coinIds, quote, interval }, mostMs: MOST_MS_FOR_ROLLUPS }).catch(
    (error: unknown) => {
      log.debug({ err: error }, 'could not roll up the candles ahead of time');
    },
  );
}

/** Clears what killed runs left behind: their running state, and chunks in the queue that no run wants any more. */
async function clearLeftovers({ database: { sql }, clock }: App, ingestion: Ingestion): Promise<void> {
  await abandonExpired(sql, clock.now());
  await abandonRunsOf(sql, (await runningOwners(sql)).filter(isGone));
  // Chunks without a run would only block new chunks of the same name.
  if ((await runningOwners(sql)).length === 0) await (await ingestion.queue()).wipe();
}

async function agreed(
  { io, signal }: CommandContext,
  due: PlanReports,
  options: BackfillCommandOptions,
): Promise<boolean> {
  const most = mostRequests(due);
  if (most <= CONFIRM_ABOVE || options.yes || !canAsk(io)) return true;
  return confirm(io, `Send up to ${formatCount(most)} requests?`, signal);
}
