/** Metrics for Prometheus. The process counts its events as they happen, and reads the warehouse for each scrape. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Instant } from '../../clock.ts';
import type { NoticeEvent, StateEvent } from '../../core/settings/notice-settings.ts';
import type { Outcome } from '../../ingest/outcome.ts';
import type { ChunkJob } from '../../ingest/queue/chunk-job.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import type { RunEnd, ScheduleRun } from '../../store/work/schedule-run.ts';
import type { Gauges } from '../../views/operations/gauges.ts';
import type { Disk } from './disk.ts';
import { DATABASE, HEARTBEAT, LOCK } from './service-status.ts';

type AlertState = {
  readonly event: StateEvent;
  readonly since: Instant | null;
  /** The state does not hold, but the notice of its end was not sent yet. */
  readonly isSettling?: boolean;
};

/** The values of the gauges. A part that this process does not know is null. Its gauges are then left out, instead of being 0. */
export type MetricInputs = {
  readonly warehouse: Gauges | null;
  readonly ledger: { readonly quota: QuotaState; readonly reserved: Reserved } | null;
  /** Jobs by queue. */
  readonly queued: Readonly<Record<string, number>> | null;
  /** The states that the operator is told of, whether they hold or not. Null when they are not known now. */
  readonly states: readonly AlertState[] | null;
  readonly disks: readonly Disk[];
  /** The subjects of the incidents of this process. */
  readonly incidents: readonly string[];
  readonly isReady: boolean;
};

/**
 * prom-client measures the lag of the event loop twice: once per scrape, and with a timer that wakes the process a hundred times a second,
 * a fifth of the cost of an idle service. A slower timer gives wrong figures: Node counts the time between two ticks as lag.
 */
const LAG_OF_TIMER = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'];
const NEVER_MS = 86_400_000;

const KINDS: readonly ChunkJob['kind'][] = ['backfill', 'freshness', 'holes'];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const part of LAG_OF_TIMER) registry.removeSingleMetric(`nodejs_eventloop_lag_${part}_seconds`);
  const { requests, chunks, candles, revised, quarantined, runs, notices, runSeconds } = createCounters(registry);
  const setGauges = createGauges(registry);
  // Prometheus sees an increase only in a series that it has scraped before.
  for (const kind of KINDS) for (const each of [candles, revised, quarantined]) each.inc({ kind }, 0);
  return {
    request: ({ endpoint, outcome, requests: n }: { endpoint: string; outcome: string; requests: number }) =>
      requests.inc({ endpoint, outcome }, n),
    chunk: ({ kind }: ChunkJob, outcome: Outcome) => {
      chunks.inc({ kind, outcome: outcome.kind });
      if (outcome.kind !== 'stored') return;
      candles.inc({ kind }, outcome.stored);
      revised.inc({ kind }, outcome.revised);
      quarantined.inc({ kind }, outcome.quarantined);
    },
    chunkFailed: ({ kind }: ChunkJob, final: boolean) => chunks.inc({ kind, outcome: final ? 'failed' : 'retried' }),
    run: ({ schedule }: ScheduleRun, { state }: RunEnd, tookMs: number) => {
      runs.inc({ schedule, state });
      runSeconds.observe({ schedule }, tookMs / 1000);
    },
    notice: (event: NoticeEvent, outcome: 'raised' | 'sent' | 'failed' | 'given up') => notices.inc({ event, outcome }),
    /** All metrics in the text format of Prometheus. `read` returns the values of the gauges. */
    text: async (read: () => Promise<MetricInputs>) => {
      setGauges(await read());
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function createCounters(registry: Registry) {
  const registers = [registry];
  const counter = <const L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name: `chandler_${name}`, help, labelNames, registers });
  return {
    requests: counter('requests_total', 'Requests to the upstream, by outcome.', ['endpoint', 'outcome']),
    chunks: counter('chunks_total', 'Attempts at chunks of candles and prices, by outcome.', ['kind', 'outcome']),
    candles: counter('candles_stored_total', 'Candles and prices that were new or changed.', ['kind']),
    revised: counter('candles_revised_total', 'Final candles and prices that the upstream has changed since.', [
      'kind',
    ]),
    quarantined: counter(
      'rows_quarantined_total',
      'Rows of candles and prices that this process quarantined because they are impossible.',
      ['kind'],
    ),
    runs: counter('schedule_runs_total', 'Runs of the schedules, by final state.', ['schedule', 'state']),
    notices: counter(
      'notices_total',
      'Notices to the operator that this process raised or tried to send, by outcome.',
      ['event', 'outcome'],
    ),
    runSeconds: new Histogram({
      name: 'chandler_schedule_run_seconds',
      help: 'Duration of the runs of the schedules.',
      labelNames: ['schedule'] as const,
      buckets: [0.1, 0.5, 1, 5, 15, 60, 300],
      registers,
    }),
  };
}

/** Whether the state lasts, by the same rule as the notices. */
function lasts({ since, isSettling = false }: AlertState): boolean {
  return since !== null || isSettling;
}

const OVER: ReadonlySet<string> = new Set(['done', 'failed', 'cancelled']);
const TIER = ['tier', 'interval', 'priority'] as const;

function createGauges(registry: Registry): (inputs: MetricInputs) => void {
  const empty: (() => void)[] = [];
  const gauge = <const L extends string>(name: string, help: string, labelNames: readonly L[] = []) => {
    const made = new Gauge({ name: `chandler_${name}`, help, labelNames, registers: [registry] });
    // Without labels, `reset` would set it to 0.
    empty.push(() => (labelNames.length === 0 ? made.remove() : made.reset()));
    return made;
  };

  const ready = gauge('ready', '1 when everything runs.');
  const incident = gauge('incident', '1 while this process has this problem (as in /health).', ['what']);
  const alert = gauge(
    'alert',
    '1 while this state lasts, as notices report it (database-down and database-locked begin at once, database-down also ends at once); 0 while it does not.',
    ['event'],
  );
  const diskFree = gauge('disk_free_bytes', 'Room on the disk of a folder that Chandler writes to.', ['folder']);
  const quotaLeft = gauge('quota_left_requests', 'Requests left in a quota window, reserved or not.', ['window']);
  const quotaLimit = gauge('quota_limit_requests', 'Requests that a quota window allows.', ['window']);
  const reserved = gauge('quota_reserved_requests', 'Requests reserved for the schedules until the window ends.', [
    'window',
  ]);
  const holdUntil = gauge('hold_until_timestamp_seconds', 'Until when all requests wait; 0 when none does.');
  const pace = gauge('pace_requests_per_second', 'Requests per second that are allowed now.');
  const lag = gauge('freshness_oldest_age_seconds', 'Age of the newest data of the oldest series of a tier.', TIER);
  const target = gauge('freshness_target_age_seconds', 'The highest age that the tier is configured for.', TIER);
  const achievable = gauge(
    'freshness_achievable_age_seconds',
    'The highest age that the data reach, as Chandler reports it.',
    TIER,
  );
  const series = gauge('tracked_series', 'Tracked series of a tier.', TIER);
  const unanswered = gauge(
    'unanswered_series',
    'Tracked series of a tier without any data yet: they have no age.',
    TIER,
  );
  const depth = gauge('queue_jobs', 'Jobs in a queue.', ['queue']);
  const backfills = gauge('backfills', "The service's unfinished backfills, by state.", ['state']);
  const ended = gauge('backfills_ended', "The service's finished backfills that notices report, by state.", ['state']);
  const revisions = gauge('revisions', 'Old values of final candles and prices that are kept.');
  const quarantined = gauge('quarantined_rows', 'Rows in quarantine, of all endpoints and processes.');
  const limits = gauge('history_limits', 'History limits of plans that upstream answers have shown.');
  const connections = gauge('database_connections', 'Connections to the database, by state.', ['state']);
  const lastDone = gauge('schedule_last_done_timestamp_seconds', 'When a schedule was last done.', ['schedule']);

  const setLedger = ({ quota, reserved: reservation }: NonNullable<MetricInputs['ledger']>) => {
    for (const window of ['month', 'day'] as const) {
      const { limit, spent } = quota[window];
      if (limit === null) continue;
      quotaLimit.set({ window }, limit);
      quotaLeft.set({ window }, Math.max(0, limit - spent));
      reserved.set({ window }, reservation[window]);
    }
    holdUntil.set(quota.hold === null ? 0 : quota.hold.until / 1000);
    pace.set(quota.rate.now ?? Number.POSITIVE_INFINITY);
  };
  const setWarehouse = (warehouse: Gauges) => {
    for (const tier of warehouse.tiers) {
      const labels = { tier: tier.tier, interval: tier.interval, priority: String(tier.priority) };
      series.set(labels, tier.series);
      unanswered.set(labels, tier.unseen);
      target.set(labels, tier.targetAgeMs / 1000);
      if (tier.achievableAgeMs !== null) achievable.set(labels, tier.achievableAgeMs / 1000);
      if (tier.oldestAgeMs !== null) lag.set(labels, tier.oldestAgeMs / 1000);
    }
    for (const { state, n } of warehouse.backfills) (OVER.has(state) ? ended : backfills).set({ state }, n);
    for (const { state, n } of warehouse.connections) connections.set({ state }, n);
    for (const { schedule, at } of warehouse.lastDone) lastDone.set({ schedule }, at / 1000);
    limits.set(warehouse.historyLimits);
    revisions.set(warehouse.revisions);
    quarantined.set(warehouse.quarantined);
  };
  return ({ warehouse, ledger, queued, states, disks, incidents, isReady }) => {
    for (const emptyOne of empty) emptyOne();
    ready.set(isReady ? 1 : 0);
    for (const what of incidents) incident.set({ what }, 1);
    for (const { folder, freeBytes } of disks) diskFree.set({ folder }, freeBytes);
    for (const { event } of states ?? []) alert.set({ event }, 0);
    for (const state of states ?? []) if (lasts(state)) alert.set({ event: state.event }, 1);
    // From the incidents of this process: while the database is down or locked, the process may know no states.
    alert.set({ event: 'database-down' }, incidents.includes(DATABASE) || incidents.includes(HEARTBEAT) ? 1 : 0);
    const isLocked =
      incidents.includes(LOCK) || (states ?? []).some((one) => one.event === 'database-locked' && lasts(one));
    alert.set({ event: 'database-locked' }, isLocked ? 1 : 0);
    for (const [queue, jobs] of Object.entries(queued ?? {})) depth.set({ queue }, jobs);
    if (ledger !== null) setLedger(ledger);
    if (warehouse !== null) setWarehouse(warehouse);
  };
}
