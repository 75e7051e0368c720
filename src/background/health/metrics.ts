/** Figures for Prometheus: what happened in this process is counted as it happens, how the warehouse stands is read when asked for. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { NoticeEvent } from '../../core/notice-settings.ts';
import type { Outcome } from '../../ingest/outcome.ts';
import type { ChunkJob } from '../../ingest/queue/chunk-job.ts';
import type { QuotaState, SetAside } from '../../quota/quota.ts';
import type { RunEnd, ScheduleRun } from '../../store/work/schedule-run.ts';
import type { Figures } from '../../views/operations/gauges.ts';

/** How things stand; null for what this process does not know: of that nothing is said, rather than 0. */
export type Standing = {
  readonly figures: Figures | null;
  readonly ledger: { readonly quota: QuotaState; readonly setAside: SetAside } | null;
  /** Jobs by queue. */
  readonly queued: Readonly<Record<string, number>> | null;
  readonly isReady: boolean;
};

export type Metrics = {
  asked(asked: { readonly endpoint: string; readonly outcome: string; readonly requests: number }): void;
  chunk(job: ChunkJob, outcome: Outcome): void;
  chunkFailed(job: ChunkJob, final: boolean): void;
  run(run: ScheduleRun, end: RunEnd, tookMs: number): void;
  notice(event: NoticeEvent, outcome: 'raised' | 'sent' | 'failed' | 'given up'): void;
  text(read: () => Promise<Standing>): Promise<{ readonly contentType: string; readonly text: string }>;
};

export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name: `chandler_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name: `chandler_${name}`, help, labelNames, registers });

  const requests = counter('requests_total', 'Requests to the upstream, by what came of them.', [
    'endpoint',
    'outcome',
  ] as const);
  const chunks = counter('chunks_total', 'Chunks of candles, by how an attempt at them ended.', [
    'kind',
    'outcome',
  ] as const);
  const candles = counter('candles_stored_total', 'Candles that were new or changed.', ['kind'] as const);
  const revised = counter('candles_revised_total', 'Final candles that upstream has changed since.', ['kind'] as const);
  const setAsideRows = counter('rows_set_aside_total', 'Rows that could not be true.', ['kind'] as const);
  const runs = counter('schedule_runs_total', 'Runs of the schedules, by how they ended.', [
    'schedule',
    'state',
  ] as const);
  const notices = counter(
    'notices_total',
    'Notices to the operator: noticed by this process, and what came of sending.',
    ['event', 'outcome'] as const,
  );
  const runSeconds = new Histogram({
    name: 'chandler_schedule_run_seconds',
    help: 'How long the runs of the schedules took.',
    labelNames: ['schedule'] as const,
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300],
    registers,
  });

  const ready = gauge('ready', '1 when everything runs.');
  const quotaLeft = gauge('quota_left_requests', 'Requests left in a window of the quota, set aside or not.', [
    'window',
  ] as const);
  const quotaLimit = gauge('quota_limit_requests', 'Requests that a window of the quota has.', ['window'] as const);
  const aside = gauge('quota_set_aside_requests', 'Requests that the schedules still need until a window ends.', [
    'window',
  ] as const);
  const holdUntil = gauge('hold_until_timestamp_seconds', 'Until when everybody waits; 0 when nobody does.');
  const pace = gauge('pace_requests_per_second', 'Requests a second that are allowed now.');
  const lag = gauge('freshness_oldest_age_seconds', 'Age of the newest data of the oldest series of a tier.', [
    'tier',
    'interval',
    'priority',
  ] as const);
  const target = gauge('freshness_target_age_seconds', 'How old that may become, as asked for.', [
    'tier',
    'interval',
    'priority',
  ] as const);
  const achievable = gauge('freshness_achievable_age_seconds', 'How old that becomes with the requests there are.', [
    'tier',
    'interval',
    'priority',
  ] as const);
  const series = gauge('tracked_series', 'Tracked series of a tier.', ['tier', 'interval', 'priority'] as const);
  const unanswered = gauge('unanswered_series', 'Tracked series of a tier without an answer yet: they have no age.', [
    'tier',
    'interval',
    'priority',
  ] as const);
  const depth = gauge('queue_jobs', 'Jobs in a queue.', ['queue'] as const);
  const backfills = gauge('backfills', 'Backfills of the service that are not over, by state.', ['state'] as const);
  const revisions = gauge('revisions', 'Old values of final candles that are kept.');
  const quarantined = gauge('quarantined_rows', 'Rows that are set aside.');
  const connections = gauge('database_connections', 'Connections to the database, by their state.', ['state'] as const);
  const scheduleEnd = gauge('schedule_last_done_timestamp_seconds', 'When a schedule was last done.', [
    'schedule',
  ] as const);
  const perTier = [lag, target, achievable, series, unanswered];

  return {
    asked: ({ endpoint, outcome, requests: n }) => requests.inc({ endpoint, outcome }, n),
    chunk: ({ kind }, outcome) => {
      chunks.inc({ kind, outcome: outcome.kind });
      if (outcome.kind !== 'stored') return;
      candles.inc({ kind }, outcome.stored);
      revised.inc({ kind }, outcome.revised);
      setAsideRows.inc({ kind }, outcome.setAside);
    },
    chunkFailed: ({ kind }, final) => chunks.inc({ kind, outcome: final ? 'failed' : 'retried' }),
    run: ({ schedule }, { state }, tookMs) => {
      runs.inc({ schedule, state });
      runSeconds.observe({ schedule }, tookMs / 1000);
    },
    notice: (event, outcome) => notices.inc({ event, outcome }),
    text: async (read) => {
      const { figures, ledger, queued, isReady } = await read();
      ready.set(isReady ? 1 : 0);
      for (const one of perTier) one.reset();
      for (const one of [quotaLeft, quotaLimit, aside, depth, backfills, connections, scheduleEnd]) one.reset();
      for (const one of [holdUntil, pace, revisions, quarantined]) one.remove();
      for (const [queue, jobs] of Object.entries(queued ?? {})) depth.set({ queue }, jobs);
      if (ledger !== null) {
        const { quota, setAside } = ledger;
        for (const window of ['month', 'day'] as const) {
          const { limit, spent } = quota[window];
          if (limit === null) continue;
          quotaLimit.set({ window }, limit);
          quotaLeft.set({ window }, Math.max(0, limit - spent));
          aside.set({ window }, setAside[window]);
        }
        holdUntil.set(quota.hold === null ? 0 : quota.hold.until / 1000);
        pace.set(quota.pace.now ?? Number.POSITIVE_INFINITY);
      }
      if (figures !== null) {
        for (const tier of figures.tiers) {
          const labels = { tier: tier.tier, interval: tier.interval, priority: String(tier.priority) };
          series.set(labels, tier.series);
          unanswered.set(labels, tier.unseen);
          target.set(labels, tier.targetAgeMs / 1000);
          if (tier.achievableAgeMs !== null) achievable.set(labels, tier.achievableAgeMs / 1000);
          if (tier.oldestAgeMs !== null) lag.set(labels, tier.oldestAgeMs / 1000);
        }
        for (const { state, n } of figures.backfills) backfills.set({ state }, n);
        for (const { state, n } of figures.connections) connections.set({ state }, n);
        for (const { schedule, at } of figures.lastDone) scheduleEnd.set({ schedule }, at / 1000);
        revisions.set(figures.revisions);
        quarantined.set(figures.quarantined);
      }
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}
