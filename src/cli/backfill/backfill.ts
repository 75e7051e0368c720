/** `chandler backfill`: the plan, a question when it is dear, a live bar, and the report. May be killed at any time. */
import { type Command, Option } from 'commander';
import type { App } from '../../app.ts';
import type { Interval } from '../../core/interval.ts';
import { type BackfillRun, runBackfill } from '../../ingest/backfill/backfill.ts';
import { type BackfillPlan, planBackfill } from '../../ingest/backfill/plan.ts';
import type { Wall } from '../../ingest/limits/history-limit.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { DATABASE_AWAY, QUEUE_AWAY } from '../../ingest/request/outage-retry.ts';
import type { Session } from '../../ingest/session.ts';
import { refreshForAbsences } from '../../ingest/snapshot/coin-list.ts';
import { type Ingestion, openIngestion } from '../../ingestion.ts';
import { rollUp } from '../../store/candle/rollup.ts';
import { wantSeries } from '../../store/candle/series.ts';
import { compactKeys } from '../../store/upkeep/compact.ts';
import { abandonExpired, abandonRunsOf, runningOwners } from '../../store/work/backfill.ts';
import { canAsk, confirm } from '../input/confirm.ts';
import { parseDuration } from '../input/duration.ts';
import { argument, parseInteger, parsePriority } from '../input/options.ts';
import { checkCoinChoice, eachInterval, parseSpan, type TargetsOptions } from '../input/target.ts';
import { formatBytes, formatCount, formatDuration } from '../output/format.ts';
import { printJson } from '../output/json.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { isGone, ownerName, requesterName } from '../shell/owner.ts';
import { makeBackfillReport, printBackfillReport } from './backfill-report.ts';
import { backfillsAsJson, type Ending, printBackfillTotal } from './backfill-total.ts';
import { type Detached, describeDetached, detach } from './detach.ts';
import { makeReports, targetOptions } from './plan.ts';
import { finishByLimits, forecastOf, type PlanReport, quotaLeft } from './plan-report.ts';
import { mostRequests, plansAsJson, printPlans } from './plan-total.ts';
import { createProgress } from './progress-bar.ts';

export type BackfillCommandOptions = TargetsOptions & {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly detach?: boolean;
  readonly priority?: number;
  readonly maxWait: number;
  readonly concurrency: number;
  readonly json?: boolean;
  /** Leaves the table of the other plans out. */
  readonly brief?: boolean;
};

/** Above so many requests somebody at a terminal is asked first. */
const ASK_ABOVE = 1_000;
/** Hundreds of years of hourly candles: nobody who has just stored fewer is kept waiting for it. */
const MOST_MS_FOR_ROLLUPS = 10_000;

export function backfillCommand(program: Command, context: CommandContext): void {
  targetOptions(
    program
      .command('backfill')
      .description(
        'fetch what is missing: shows the cost first, a live bar, and a report; run it again at any time, it asks only for what is still missing',
      ),
  )
    .option('--dry-run', 'show the plan and stop')
    .option('--yes', `do not ask before more than ${formatCount(ASK_ABOVE)} requests`)
    .option('--detach', 'record it for the service to work off (chandler service), and end')
    .option('--priority <n>', 'with --detach: the highest goes first (default: 0)', argument(parsePriority))
    .addOption(
      new Option(
        '--max-wait <time>',
        'stop (exit code 75) rather than wait longer than this, for the quota, the database or the queue',
      )
        .argParser(argument(parseDuration))
        .default(5 * 60_000, '5m'),
    )
    .option(
      '--concurrency <n>',
      'requests under way at once',
      argument((text) => parseInteger(text, 1, 32)),
      8,
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: BackfillCommandOptions, command: Command) => {
        checkCoinChoice(coins, options);
        for (const one of eachInterval(options)) parseSpan(one, context.clock.now());
        checkDetached(options, (name) => command.getOptionValueSource(name) === 'cli');
        return context.withApp({ schema: 'prepare', patient: true }, (app) => backfill(app, context, coins, options));
      }),
    );
}

/** What is for the one is not for the other. */
function checkDetached({ detach, priority }: BackfillCommandOptions, isGiven: (name: string) => boolean): void {
  if (priority !== undefined && !detach)
    throw new UsageError('--priority is for backfills of the service; give --detach, too, or leave it out.');
  if (detach && isGiven('maxWait'))
    throw new UsageError('--max-wait is not for --detach: the service waits as long as it takes; leave it out.');
  if (detach && isGiven('concurrency'))
    throw new UsageError('--concurrency is not for --detach: chandler service has it; leave it out.');
}

/** Also the main part of `chandler demo`. */
export async function backfill(
  app: App,
  context: CommandContext,
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<ExitCode> {
  const { io, signal } = context;
  let ingestion: Ingestion | undefined;
  try {
    ingestion = await openIngestion(app, { signal, withQueue: !options.dryRun && !options.detach });
    const { session } = ingestion;
    const reports = await makeReports(app, session, coins, options, signal);
    if (options.json && options.dryRun) printJson(io.out, plansAsJson(reports));
    if (!options.json) printPlans(io.out, reports, options);
    if (options.dryRun) return EXIT.done;
    const { sql } = app.database;
    const due = reports.filter(({ plan }) => plan.coinsWithGaps > 0);
    const others = reports.filter((report) => !due.includes(report));
    for (const { target } of others) await wantSeries(sql, { ...target, priority: 0 });
    const isCut = others.some(({ plan, wall }) => isRefused(plan, wall));
    if (due.length === 0) {
      if (options.json) printJson(io.out, { plan: plansAsJson(reports), backfill: null });
      return isCut ? EXIT.failed : EXIT.done;
    }
    if (!(await agreed(context, due, options))) {
      io.err.write('Nothing was asked.\n');
      if (options.json) printJson(io.out, { plan: plansAsJson(reports), backfill: null });
      return EXIT.stoppedEarly;
    }
    if (options.detach) {
      await detachAll(app, context, { reports, due }, coins, options);
      return EXIT.done;
    }
    await clearLeftovers(app, ingestion);
    const list = await refreshForAbsences({ sendRequest: session.sendRequest, sql, clock: app.clock, signal });
    if (list.kind === 'failed') io.err.write(`${list.message}; what was empty stays unconfirmed\n`);
    const endings = await runEach(app, context, ingestion, due, coins, options);
    const left = due.slice(endings.length);
    if (options.json) printJson(io.out, { plan: plansAsJson(reports), backfill: backfillsAsJson(endings, left) });
    else if (due.length > 1) printBackfillTotal(io.out, endings, left);
    const { end } = endings.at(-1)!.ending.run;
    if (end.kind === 'misconfigured') throw new UsageError(end.message);
    if (end.kind !== 'done') return exitCodeOfEnd(end);
    let code: ExitCode = isCut ? EXIT.failed : EXIT.done;
    for (const { report, ending } of endings)
      if ((await exitCodeOf(app, session, report, ending.run)) !== EXIT.done) code = EXIT.failed;
    return code;
  } catch (error) {
    if (error instanceof ConfigurationError) throw new UsageError(error.message);
    throw error;
  } finally {
    await ingestion?.close();
  }
}

/** One interval after the other, up to the first that ends early. @throws UsageError when nothing at all could be asked. */
async function runEach(
  app: App,
  context: CommandContext,
  ingestion: Ingestion,
  due: readonly PlanReport[],
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<readonly Ending[]> {
  const endings: Ending[] = [];
  for (const planned of due) {
    // What those before it have spent is not left for it.
    const report =
      endings.length === 0
        ? planned
        : { ...planned, now: app.clock.now(), quota: await ingestion.session.quota.state() };
    if (due.length > 1) context.io.err.write(`${report.target.interval} candles\n`);
    const run = await runWithProgress(app, context, ingestion, report, coins, options);
    // A run that could ask nothing has nothing to report.
    const { stored } = run.totals ?? run.seen;
    if (run.end.kind === 'misconfigured' && stored === 0 && endings.length === 0) throw new UsageError(run.end.message);
    const ending = await makeBackfillReport(app, report, run);
    endings.push({ report, ending });
    if (!options.json) {
      if (due.length > 1) context.io.out.write(`\n${report.target.interval} candles:\n`);
      printBackfillReport(context.io.out, ending, app.clock.now());
    }
    if (run.end.kind !== 'done') break;
    await compact(app, context, report);
    await rollUpWhatIsThere(app, context, report);
  }
  return endings;
}

/** Each interval is a backfill of its own. */
async function detachAll(
  app: App,
  { io }: CommandContext,
  { reports, due }: { readonly reports: readonly PlanReport[]; readonly due: readonly PlanReport[] },
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<void> {
  const { priority = 0 } = options;
  const recorded: { readonly interval: Interval; readonly detached: Detached }[] = [];
  for (const report of due) {
    const { interval } = report.target;
    const detached = await detach(app, report, { spec: specOf(coins, options, interval), priority });
    recorded.push({ interval, detached });
  }
  if (!options.json) {
    for (const { detached } of recorded) io.out.write(`\n${describeDetached(detached)}`);
    return;
  }
  const intervals = recorded.map(({ interval, detached }) => ({ interval, ...detached }));
  const several = recorded.length === 1 ? {} : { intervals };
  const backfill = { state: 'queued', ...recorded[0]!.detached, ...several };
  printJson(io.out, { plan: plansAsJson(reports), backfill });
}

/** Nothing depends on it: a key that is not rebuilt only takes more room. */
async function compact({ database, log }: App, { signal }: CommandContext, { target }: PlanReport): Promise<void> {
  const { partitions, bytesSaved } = await compactKeys(database.sql, target.interval, signal).catch(
    (error: unknown) => {
      log.debug({ err: error }, 'the keys of the candles could not be rebuilt');
      return { partitions: 0, bytesSaved: 0 };
    },
  );
  if (partitions > 0) log.info(`rebuilt the keys of ${partitions} partitions, ${formatBytes(bytesSaved)} smaller now`);
}

/** So that whoever serves it at once reads years at once. What is left is made by the next one, or by the service. */
async function rollUpWhatIsThere(
  { database, log }: App,
  { signal }: CommandContext,
  { target }: PlanReport,
): Promise<void> {
  await rollUp(database.sql, { signal, of: target, mostMs: MOST_MS_FOR_ROLLUPS }).catch((error: unknown) => {
    log.debug({ err: error }, 'coarser candles could not be made ahead of time');
  });
}

function exitCodeOfEnd(end: BackfillRun['end']): ExitCode {
  return end.kind === 'interrupted' ? EXIT.interrupted : EXIT.stoppedEarly;
}

/** A run is only all done when nothing of what was asked for is refused, failed, or still waits to be asked. */
async function exitCodeOf(app: App, session: Session, { target }: PlanReport, run: BackfillRun): Promise<ExitCode> {
  const wall = session.walls.of(target.interval);
  const now = app.clock.now();
  const { sql } = app.database;
  const left = await planBackfill({ sql, target, now, askedSince: run.startedAt, plan: session.plan, wall });
  const incomplete = run.refused.size > 0 || run.failed.length > 0 || left.cost.slots > 0 || isRefused(left, wall);
  return incomplete ? EXIT.failed : EXIT.done;
}

function isRefused(plan: BackfillPlan, wall: Wall): boolean {
  return plan.refusedSlots > 0 || (wall.kind === 'met' && plan.cost.refusedSlots > 0);
}

/** What killed runs left: their claim to be running, and chunks in the queue that nobody wants any more. */
async function clearLeftovers({ database: { sql }, clock }: App, ingestion: Ingestion): Promise<void> {
  await abandonExpired(sql, clock.now());
  await abandonRunsOf(sql, (await runningOwners(sql)).filter(isGone));
  // A wiped queue is harmless; one that is nobody's would only stand in the way of chunks of the same name.
  if ((await runningOwners(sql)).length === 0) await (await ingestion.queue()).wipe();
}

async function agreed(
  { io, signal }: CommandContext,
  due: readonly PlanReport[],
  options: BackfillCommandOptions,
): Promise<boolean> {
  const most = mostRequests(due);
  if (most <= ASK_ABOVE || options.yes || !canAsk(io)) return true;
  return confirm(io, `Spend up to ${formatCount(most)} requests?`, signal);
}

/** As it was asked for. */
function specOf(coins: readonly string[], { top, all, start, end, quote }: BackfillCommandOptions, interval: Interval) {
  return { coins, top, all, start, end, interval, quote };
}

async function runWithProgress(
  app: App,
  { io, signal }: CommandContext,
  ingestion: Ingestion,
  report: PlanReport,
  coins: readonly string[],
  options: BackfillCommandOptions,
): Promise<BackfillRun> {
  const { session } = ingestion;
  let underWay = 0;
  const { perSecond } = session.limits;
  const progress = createProgress(io.err, app.clock, {
    forecast: (requests) => finishByLimits(forecastOf(report, requests), requests),
    underWay: () => underWay,
    gapMs: perSecond === null ? 0 : 1000 / perSecond,
  });
  /** A wall that was only documented may turn out not to be there: then all of it is asked. */
  const total = (planned: number) =>
    report.plan.probe && session.walls.of(report.target.interval).kind === 'open'
      ? Math.max(planned, report.plan.costIfOpen.requests)
      : planned;
  const left = quotaLeft(report);
  const queue = await ingestion.queue();
  let wasAway: string | null = null;
  /** A line that stays: whoever looks at the log later sees that it was not the upstream. */
  const tellWhoIsAway = (reason: string | null) => {
    if (reason === wasAway) return;
    if (wasAway !== null) io.err.write(`${wasAway.replace('is away', 'is back')}\n`);
    if (reason !== null) io.err.write(`waits up to ${formatDuration(options.maxWait)}: ${reason}\n`);
    wasAway = reason;
  };
  try {
    return await runBackfill(
      {
        sql: app.database.sql,
        clock: app.clock,
        queue,
        ingestChunk: async (...args) => {
          underWay++;
          try {
            return await session.ingestChunk(...args);
          } finally {
            underWay--;
          }
        },
        walls: session.walls,
        plan: session.plan,
        owner: ownerName(process.pid),
        bringBack: app.bringBack,
      },
      {
        target: report.target,
        spec: specOf(coins, options, report.target.interval),
        requestedBy: requesterName(),
        planned: report.plan,
        startedAt: app.clock.now(),
        concurrency: options.concurrency,
        maxWaitMs: options.maxWait,
        signal,
        onProgress: (state) => {
          progress.update({
            chunksDone: state.chunksDone,
            chunksTotal: total(state.chunksPlanned),
            candles: state.stored,
            quotaLeft: left === null ? null : Math.max(0, left - state.requests),
            requests: state.requests,
            waiting: state.waiting,
          });
          const reason = state.waiting?.reason ?? null;
          tellWhoIsAway(reason === DATABASE_AWAY || reason === QUEUE_AWAY ? reason : null);
        },
      },
    );
  } finally {
    progress.done();
  }
}
