/** The work on chunks of tracked series and of backfills. Each attempt writes one log line, and the metrics count it. */

import { type Outcome, UpstreamError } from '../../ingest/outcome.ts';
import type { ChunkJob } from '../../ingest/queue/chunk-job.ts';
import type { ChunkQueue } from '../../ingest/queue/chunk-queue.ts';
import type { ChunkWorker } from '../../ingest/queue/chunk-worker.ts';
import type { OutageRetry } from '../../ingest/request/outage-retry.ts';
import { type BackfillRunner, createBackfillRunner } from '../../ingest/runner/backfill-runner.ts';
import { endFailedRefresh, withEndOfRefresh } from '../../ingest/tracking/keep-fresh.ts';
import { reportFailure } from '../health/availability.ts';
import type { ServiceContext, SessionContext } from '../service-context.ts';
import { readEta } from './backfill-eta.ts';

const sameTime = (ms: number) => ms;

export function workFreshness(context: SessionContext, queue: ChunkQueue, retry: OutageRetry): ChunkWorker {
  const { clock, app, ingestion, ending } = context;
  const { sql } = app.database;
  const { historyLimits, circuitBreaker } = ingestion.session;
  const { realMs = sameTime } = app.overrides;
  const ingestChunk = withEndOfRefresh(circuitBreaker(ingestion.session.ingestChunk), sql);
  return queue.work({
    concurrency: context.concurrency,
    handle: (job, attempt) => ingestChunk(job, { attempt, signal: ending, retry }),
    snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
    now: () => clock.now(),
    events: {
      onOutcome: (job, outcome) => logChunk(context, job, outcome),
      onFailure: (job, error, final) => {
        logFailure(context, job, error, final);
        if (!final) return;
        retry(() => endFailedRefresh({ sql, clock, historyLimits }, job)).catch((again: unknown) => {
          // The upkeep finds the chunk later, as one that the queue has lost.
          app.log.debug({ err: again }, 'could not record the end of a chunk');
        });
      },
    },
  });
}

export async function runBackfills(context: SessionContext): Promise<BackfillRunner> {
  const { app, ingestion, clock, log, owner, concurrency } = context;
  const { session } = ingestion;
  const runner = createBackfillRunner({
    sql: app.database.sql,
    clock,
    queue: await ingestion.queue(),
    session,
    owner,
    concurrency,
    keep: app.config.keep.candles,
    finishOf: (id, state) => readEta(context, session, id, state),
    onBegin: ({ id, interval, quote, coinIds }, requests) =>
      log.info({ backfill: id, interval, quote, coins: coinIds.length, requests }, `backfill ${id} started`),
    onEnd: ({ id, state, message, waitUntil, ...counts }) =>
      log[state === 'failed' || state === 'misconfigured' ? 'error' : 'info'](
        { backfill: id, state, message, ...(waitUntil === null ? {} : { until: toIso(waitUntil) }), ...counts },
        `backfill ${id}: ${state}`,
      ),
    onChunk: (job, outcome) => logChunk(context, job, outcome),
    onFailure: (job, error, final) => logFailure(context, job, error, final),
    onError: (error) => reportFailure(context, 'the backfills', error),
    realMs: app.overrides.realMs ?? sameTime,
  });
  runner.start();
  return runner;
}

export function logChunk({ metrics, log }: ServiceContext, job: ChunkJob, outcome: Outcome): void {
  metrics.chunk(job, outcome);
  const { kind: how, ...rest } = outcome;
  const times = {
    ...('until' in rest ? { until: toIso(rest.until) } : {}),
    ...('againAt' in rest && rest.againAt !== undefined ? { againAt: toIso(rest.againAt) } : {}),
  };
  // The metrics count a chunk that only waits. In the log at `info`, a day with an exhausted quota would produce too many lines.
  const level = outcome.kind === 'snoozed' || outcome.kind === 'deferred' ? 'debug' : 'info';
  log[level]({ ...chunkFields(job), outcome: how, ...rest, ...times }, 'chunk');
}

export function logFailure({ metrics, failed }: ServiceContext, job: ChunkJob, error: Error, final: boolean): void {
  metrics.chunkFailed(job, final);
  const { coinId, interval } = job;
  failed({
    level: final ? 'warn' : 'info',
    message: final ? 'chunk failed' : 'chunk failed and will be retried',
    cause: error instanceof UpstreamError ? error.problem : error.message,
    name: `${coinId} ${interval}`,
    fields: { ...chunkFields(job), outcome: final ? 'failed' : 'retried' },
    error,
  });
}

function chunkFields(job: ChunkJob) {
  const { kind, coinId, quote, interval, from, to } = job;
  const backfill = kind === 'backfill' ? { backfill: job.backfillId } : {};
  return { for: kind, ...backfill, coin: coinId, quote, interval, from: toIso(from), to: toIso(to) };
}

function toIso(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString() : String(at);
}
