/** One log line and the metrics for each attempt at a chunk. */
import type { Outcome } from '../../ingest/outcome.ts';
import type { ChunkJob } from '../../ingest/queue/chunk-job.ts';
import type { ServiceContext } from './service-context.ts';

export function logChunk({ metrics, log }: ServiceContext, job: ChunkJob, outcome: Outcome): void {
  metrics.chunk(job, outcome);
  const { kind: how, ...rest } = outcome;
  const until = 'until' in rest ? { until: toIso(rest.until) } : {};
  // A chunk that only waits is in the metrics: a spent day would fill the log.
  const level = outcome.kind === 'snoozed' || outcome.kind === 'deferred' ? 'debug' : 'info';
  log[level]({ ...chunkFields(job), outcome: how, ...rest, ...until }, 'chunk');
}

export function logFailure({ metrics, log }: ServiceContext, job: ChunkJob, error: Error, final: boolean): void {
  metrics.chunkFailed(job, final);
  log[final ? 'warn' : 'info']({ ...chunkFields(job), outcome: final ? 'failed' : 'retried', err: error }, 'chunk');
}

function chunkFields(job: ChunkJob) {
  const { kind, coinId, quote, interval, from, to } = job;
  const backfill = kind === 'backfill' ? { backfill: job.backfillId } : {};
  return { for: kind, ...backfill, coin: coinId, quote, interval, from: toIso(from), to: toIso(to) };
}

export function toIso(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString() : String(at);
}
