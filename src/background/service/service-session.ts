/** One session of the service: all work with the upstream, until the service stops, the account has another plan, or its key is refused. */
import { setMaxListeners } from 'node:events';
import { type App, createReleasers, type Releasers } from '../../app.ts';
import { schedulesOf } from '../../budget.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { toIso } from '../../core/format.ts';
import type { TickQueue } from '../../ingest/queue/tick-queue.ts';
import { createOutageRetry, type OutageRetry } from '../../ingest/request/outage-retry.ts';
import type { BackfillRunner } from '../../ingest/runner/backfill-runner.ts';
import { createScheduleWorker } from '../../ingest/schedule/schedule-worker.ts';
import { createScheduler } from '../../ingest/schedule/scheduler.ts';
import { cadencesOf } from '../../ingest/schedule/scheduling.ts';
import type { KeepFresh } from '../../ingest/tracking/keep-fresh.ts';
import { openIngestion } from '../../ingestion.ts';
import type { RunEnd, ScheduleRun } from '../../store/work/schedule-run.ts';
import { databaseError, reportFailure, reportOutage, subjectOf, waitUntilAvailable } from '../health/availability.ts';
import { DATABASE, QUEUE } from '../health/service-status.ts';
import type { ServiceContext, SessionContext } from '../service-context.ts';
import { logChunk, logFailure, runBackfills, workFreshness } from './chunk-work.ts';
import { sendHeartbeat } from './heartbeat.ts';
import { createFreshness, createRuns } from './scheduled-runs.ts';
import { runUpkeep } from './upkeep.ts';

/** How long work in progress may take after the stop. Other services take over what is unfinished then. */
const GRACE_MS = 5_500;

/** What runs in a session. The session stops all parts at the same time, and each part waits for its work in progress. */
type Work = {
  readonly stops: (() => Promise<void>)[];
  readonly releasers: Releasers;
  runner: BackfillRunner | null;
  /** Whether the session ends because the upstream refuses the key. */
  isKeyRefused: boolean;
};

export function announceReady({ status, onReady, log }: ServiceContext): void {
  status.phase = 'ready';
  log.info({ roles: status.roles, owner: status.owner }, 'ready');
  onReady?.();
}

/** Runs one session until the service stops, the account has another plan, or its key is refused. */
export async function runSession(service: ServiceContext, app: App): Promise<void> {
  const { status, signal, metrics } = service;
  const runsSchedules = service.roles.includes('scheduler');
  const terms = { signal, withQueue: true, waitsForPlan: true, runsSchedules, onRequest: metrics.request };
  const opening = () => openIngestion(app, terms);
  const ingestion = await waitUntilAvailable(service, QUEUE, opening, (late) => late.close());
  if (ingestion === null) return;
  status.phase = 'starting';
  const renewal = new AbortController();
  const ending = AbortSignal.any([signal, renewal.signal]);
  // Many waits listen to this signal: while the database is unavailable, every chunk in progress does.
  setMaxListeners(0, ending);
  const context: SessionContext = { ...service, app, ingestion, ending };
  const work: Work = { stops: [], releasers: createReleasers(), runner: null, isKeyRefused: false };
  service.open.ingestion = ingestion;
  const beginning = beginWork(context, work);
  try {
    const freshness = await unlessAborted(beginning, ending);
    announceReady(context);
    await unlessAborted(
      runUpkeep(context, freshness, (why) => {
        work.isKeyRefused = why === 'key refused';
        renewal.abort();
      }),
      ending,
    );
  } catch (error) {
    // A session that ends does not wait for parts that stay silent. It aborts that wait, and this is the error of the abort.
    if (!ending.aborted) throw error;
  } finally {
    if (signal.aborted) status.phase = 'stopping';
    status.scheduling = null;
    await endWork(context, work, beginning);
    service.open.ingestion = null;
  }
}

async function beginWork(context: SessionContext, work: Work): Promise<KeepFresh> {
  const { roles, app, ingestion } = context;
  const { session } = ingestion;
  const freshQueue = await ingestion.freshQueue();
  await waitUntilAvailable(context, QUEUE, freshQueue.checkWritable, async () => undefined);
  const freshness = createFreshness(app, session, freshQueue);
  const ticks = await ingestion.openTicks();
  work.releasers.add(() => ticks.close());
  if (roles.includes('worker')) {
    const schedules = workSchedules(context, ticks, freshness);
    work.stops.push(() => schedules.close());
    work.stops.push(workFreshness(context, freshQueue, outageRetry(context)).close);
    const runner = await runBackfills(context);
    work.runner = runner;
    work.stops.push(() => runner.stop({ isKeyRefused: work.isKeyRefused }));
  }
  if (roles.includes('scheduler')) {
    const schedules = schedulesOf(app.config, session.plan.name, session.limits);
    // Before the first tick: from then on every process of the account reserves quota for these schedules.
    context.status.scheduling = { accountId: session.accountId, schedules: cadencesOf(schedules) };
    await waitUntilAvailable(
      context,
      DATABASE,
      () => sendHeartbeat(context, app),
      async () => undefined,
    );
    const scheduler = createScheduler({
      sql: app.database.sql,
      clock: context.clock,
      queue: ticks,
      schedules,
      onError: (error) => reportFailure(context, 'the scheduler', error),
    });
    work.stops.push(() => scheduler.stop());
    await waitUntilAvailable(context, 'the scheduler', scheduler.look, async () => undefined);
    scheduler.start();
  }
  return freshness;
}

/** Closes everything, including what is still being opened. After the grace period it leaves the rest to other services. */
async function endWork(
  { clock, log, ingestion }: SessionContext,
  work: Work,
  beginning: Promise<unknown>,
): Promise<void> {
  const closing = Promise.allSettled([beginning])
    .then(() => Promise.allSettled(work.stops.map((stop) => stop())))
    .then(async (ends) => {
      await work.releasers.release();
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    })
    .then(() => ingestion.close());
  closing.catch((error: unknown) => log.warn({ err: error }, 'could not close everything'));
  const late = new AbortController();
  const release = async () => {
    log.warn('stopped before all work was finished; other services, or the next run, will do the rest');
    const released = work.runner
      ?.release()
      .catch((error: unknown) => log.debug({ err: error }, 'could not release a backfill'));
    // When the database is unavailable, the claim expires without being released.
    await Promise.race([released, clock.sleep(500)]);
  };
  const grace = clock.sleep(GRACE_MS, late.signal).then(release, () => undefined);
  await Promise.race([closing.catch(() => undefined), grace]);
  late.abort();
}

/** Retries storing a response while the database or the queue is unavailable, and reports the outage. */
function outageRetry({ clock, incidents, ending, app }: SessionContext): OutageRetry {
  return createOutageRetry({
    clock,
    signal: ending,
    onOutage: (reason, _until, error) => reportOutage(incidents, reason, databaseError(error, app)),
    onRecovery: (reason) => incidents.resolve(subjectOf(reason)),
  });
}

function workSchedules(context: SessionContext, ticks: TickQueue, freshness: KeepFresh) {
  const { clock, owner, metrics, app, ingestion } = context;
  return createScheduleWorker({
    sql: app.database.sql,
    clock,
    queue: ticks,
    runs: createRuns(app, ingestion.session, freshness, {
      onChunk: (job, outcome) => logChunk(context, job, outcome),
      onFailure: (job, error) => logFailure(context, job, error, true),
    }),
    owner,
    onEnd: (run, end, tookMs) => {
      metrics.run(run, end, tookMs);
      logRun(context, run, end, tookMs);
    },
  });
}

const RUN_LINES = {
  failed: { level: 'error', message: 'schedule failed' },
  waiting: { level: 'warn', message: 'schedule failed and will be retried' },
  held: { level: 'info', message: 'schedule held' },
} as const;

/** A run that waits or fails has a cause, which other schedules may share. */
function logRun({ log, failed }: SessionContext, run: ScheduleRun, end: RunEnd, tookMs: number): void {
  const { schedule, tick, attempts } = run;
  const fields = { schedule, tick: toIso(tick), attempts, ...end, tookMs };
  if (end.state === 'done') {
    log.info(fields, `schedule ${schedule}: done`);
    return;
  }
  const cause = ('cause' in end ? end.cause : undefined) ?? end.message;
  const until = 'until' in end ? { until: toIso(end.until) } : {};
  const { level, message } = RUN_LINES[end.state];
  failed({ level, message, cause, name: schedule, fields: { ...fields, ...until } });
}
