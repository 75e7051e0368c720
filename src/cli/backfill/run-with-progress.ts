/** Runs a backfill of one interval, and shows its progress on standard error. */
import type { App } from '../../app.ts';
import { formatDuration } from '../../core/format.ts';
import { rowNoun } from '../../core/interval.ts';
import { type BackfillRun, runBackfill } from '../../ingest/backfill/backfill.ts';
import type { BackfillProgress } from '../../ingest/backfill/progress.ts';
import type { OutageReason } from '../../ingest/request/outage-retry.ts';
import type { Ingestion } from '../../ingestion.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';
import { ownerName, requesterName } from '../shell/owner.ts';
import { type BackfillCommandOptions, specOf } from './backfill-options.ts';
import { isOutage, recoveryOf } from './backfill-report.ts';
import { finishByLimits, forecastOf, type PlanReport, quotaLeft } from './plan-report.ts';
import { createProgress } from './progress-bar.ts';

export async function runWithProgress(
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
  const showOutage = outageLines(io.err, options.maxWait);
  const queue = await ingestion.queue();
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
        circuitBreaker: session.circuitBreaker,
        historyLimits: session.historyLimits,
        plan: session.plan,
        owner: ownerName(process.pid),
        restartDatabase: app.restartDatabase,
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
          progress.update(progressOf(state, report, ingestion));
          showOutage(state.waiting?.reason ?? null);
        },
      },
    );
  } finally {
    progress.done();
  }
}

function progressOf(state: BackfillProgress, report: PlanReport, { session }: Ingestion) {
  const left = quotaLeft(report);
  // When the documented history limit turns out not to exist, the backfill requests everything.
  const isOpen = report.plan.probe && session.historyLimits.of(report.target.interval).kind === 'open';
  return {
    chunksDone: state.chunksDone,
    chunksTotal: Math.max(state.chunksPlanned, isOpen ? report.plan.costIfOpen.requests : 0),
    candles: state.stored,
    noun: rowNoun(report.target.interval),
    quotaLeft: left === null ? null : Math.max(0, left - state.requests),
    requests: state.requests,
    waiting: state.waiting,
  };
}

/** Writes a permanent line when the database or the queue is lost or locked, and when it returns: a log then shows that it was not the upstream. */
function outageLines(err: Output, maxWaitMs: number): (waitReason: string | null) => void {
  let outage: OutageReason | null = null;
  return (waitReason) => {
    const now = waitReason !== null && isOutage(waitReason) ? waitReason : null;
    if (now === outage) return;
    if (outage !== null) err.write(`${recoveryOf(outage)}\n`);
    if (now !== null) err.write(`${now}; waiting up to ${formatDuration(maxWaitMs)}\n`);
    outage = now;
  };
}
