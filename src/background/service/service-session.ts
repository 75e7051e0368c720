/** One session of the service: everything that asks, until it is told to stop or the account has another plan. */
import { setMaxListeners } from 'node:events';
import { type App, createReleasers, type Releasers } from '../../app.ts';
import { schedulesOf } from '../../budget.ts';
import { unlessAborted } from '../../core/unless-aborted.ts';
import { type BackfillRunner, createBackfillRunner } from '../../ingest/backfill/backfill-runner.ts';
import { withStepBack } from '../../ingest/chunk/series-circuit-breaker.ts';
import { oneAtATime } from '../../ingest/chunk/single-flight.ts';
import type { ChunkQueue } from '../../ingest/queue/chunk-queue.ts';
import type { ChunkWorker } from '../../ingest/queue/chunk-worker.ts';
import {
  type AwayReason,
  awayReason,
  createOutageRetry,
  DATABASE_AWAY,
  type OutageRetry,
} from '../../ingest/request/outage-retry.ts';
import { createScheduleWorker } from '../../ingest/schedule/schedule-worker.ts';
import { createScheduler } from '../../ingest/schedule/scheduler.ts';
import type { Session } from '../../ingest/session.ts';
import { withTurns } from '../../ingest/tracking/keep-fresh.ts';
import { type Ingestion, openIngestion } from '../../ingestion.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { readAccount } from '../../store/quota/account.ts';
import { markEnded } from '../../store/tracking/tracked-series.ts';
import { asError } from '../health/incidents.ts';
import { DATABASE, QUEUE } from '../health/service-status.ts';
import { whenThere } from '../health/wait-until-available.ts';
import { forecastQueued, readFinish } from './backfill-eta.ts';
import { tellChunk, tellFailure, toIso } from './chunk-log.ts';
import { endNeedlessWaits } from './release-waiting.ts';
import { createFreshness, createRuns } from './scheduled-runs.ts';
import type { Parts } from './service-context.ts';

/** How long what is in hand may take when it is told to stop: then it is left to others. */
const GRACE_MS = 5_500;
const UPKEEP_MS = 10_000;
/** How often, in rounds of the upkeep, it is reckoned when queued backfills will be done. */
const FORECAST_ROUNDS = 3;

const asLong = (ms: number) => ms;

export function ready({ status, onReady, log }: Parts): void {
  status.phase = 'ready';
  log.info({ roles: status.roles, owner: status.owner }, 'ready');
  onReady?.();
}

/** One session, from its beginning until it is told to stop, or the account has another plan. */
export async function live(parts: Parts, app: App): Promise<void> {
  const { status, signal, clock, metrics, roles } = parts;
  const opening = () => openIngestion(app, { signal, withQueue: true, waitsForPlan: true, onRequest: metrics.asked });
  const ingestion = await whenThere(parts, QUEUE, opening, (late) => late.close());
  if (ingestion === null) return;
  status.phase = 'starting';
  const renew = new AbortController();
  const ending = AbortSignal.any([signal, renew.signal]);
  // Everything that waits listens to it, and while the database is away that is every chunk in hand.
  setMaxListeners(0, ending);
  const releasers = createReleasers();
  /** All at once: each waits for what it has in hand. */
  const stops: (() => Promise<void>)[] = [];
  let runner: BackfillRunner | null = null;
  const retry = outageRetryOf(parts, app, ending);
  parts.open.ingestion = ingestion;
  const begin = async () => {
    const freshQueue = await ingestion.freshQueue();
    const freshness = createFreshness(app, ingestion.session, freshQueue);
    const ticks = await ingestion.openTicks();
    releasers.add(() => ticks.close());
    if (roles.includes('worker')) {
      const worker = createScheduleWorker({
        sql: app.database.sql,
        clock,
        queue: ticks,
        runs: createRuns(app, ingestion.session, freshness),
        owner: parts.owner,
        onEnd: (run, end, tookMs) => {
          metrics.run(run, end, tookMs);
          const { schedule, tick, attempts } = run;
          const level = end.state === 'failed' ? 'error' : end.state === 'waiting' ? 'warn' : 'info';
          app.log[level](
            { schedule, tick: new Date(tick).toISOString(), attempts, ...end, tookMs },
            `schedule ${schedule}: ${end.state}`,
          );
        },
      });
      stops.push(() => worker.close());
      stops.push(workFreshness(parts, app, ingestion.session, freshQueue, retry, ending).close);
      runner = await runBackfills(parts, app, ingestion);
      stops.push(runner.stop);
    }
    if (roles.includes('scheduler')) {
      const { plan, limits } = ingestion.session;
      const scheduler = createScheduler({
        sql: app.database.sql,
        clock,
        queue: ticks,
        schedules: schedulesOf(app.config, plan.name, limits),
        onError: (error) => parts.troubles.met('the scheduler', error),
      });
      stops.push(() => scheduler.stop());
      await whenThere(parts, 'the scheduler', scheduler.look, async () => undefined);
      scheduler.start();
    }
    return freshness;
  };
  const begun = begin();
  try {
    const freshness = await unlessAborted(begun, ending);
    ready(parts);
    const keeping = upkeep(parts, app, ingestion, freshness.recover, ending, () => renew.abort());
    await unlessAborted(keeping, ending);
  } catch (error) {
    // Whatever it waited for just then: what is silent must not keep it from ending.
    if (!ending.aborted) throw error;
  } finally {
    if (signal.aborted) status.phase = 'stopping';
    // What is still being opened is closed as well.
    const closing = Promise.allSettled([begun])
      .then(() => close(stops, releasers))
      .then(() => ingestion.close());
    closing.catch((error: unknown) => app.log.warn({ err: error }, 'not everything could be closed'));
    const late = new AbortController();
    const grace = clock.sleep(GRACE_MS, late.signal).then(
      () => letGo(parts, runner),
      () => undefined,
    );
    await Promise.race([closing.catch(() => undefined), grace]);
    late.abort();
    parts.open.ingestion = null;
  }
}

async function close(stops: readonly (() => Promise<void>)[], releasers: Releasers): Promise<void> {
  const ends = await Promise.allSettled(stops.map((stop) => stop()));
  await releasers.release();
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** What takes too long is left to others: a chunk is looked at again by whoever finds it, before anything is asked. */
async function letGo({ log, clock }: Parts, runner: BackfillRunner | null): Promise<void> {
  log.warn('not everything was finished in time; what is left is done by others, or next time');
  const release = runner
    ?.release()
    .catch((error: unknown) => log.debug({ err: error }, 'a backfill was not given back'));
  // Should the database be away, the claim runs out by itself.
  await Promise.race([release, clock.sleep(500)]);
}

/** Sits out a database or a queue that is away with an answer in hand; an embedded database is started again. */
function outageRetryOf({ clock, troubles }: Parts, app: App, signal: AbortSignal): OutageRetry {
  return createOutageRetry({
    clock,
    signal,
    onAway: (reason) => {
      troubles.met(placeOf(reason), new Error(reason));
      if (reason !== DATABASE_AWAY) return;
      app.bringBack().catch((error: unknown) => troubles.met('the embedded database', asError(error)));
    },
    onBack: (reason) => {
      troubles.over(placeOf(reason));
      troubles.over('the embedded database');
    },
  });
}

function placeOf(reason: AwayReason): string {
  return reason === DATABASE_AWAY ? DATABASE : QUEUE;
}

function workFreshness(
  parts: Parts,
  app: App,
  session: Session,
  queue: ChunkQueue,
  retry: OutageRetry,
  signal: AbortSignal,
): ChunkWorker {
  const { clock } = parts;
  const { sql } = app.database;
  const { realMs = asLong } = app.surroundings;
  const ingestChunk = withTurns(oneAtATime(withStepBack(session.ingestChunk, clock)), sql);
  return queue.work({
    concurrency: parts.concurrency,
    handle: (job, attempt) => ingestChunk(job, { attempt, signal, retry }),
    snoozeMs: (outcome) => realMs(outcome.until - clock.now()),
    events: {
      onOutcome: (job, outcome) => tellChunk(parts, job, outcome),
      onFailure: (job, error, final) => {
        tellFailure(parts, job, error, final);
        if (!final) return;
        retry(() => markEnded(sql, job.seriesId)).catch((again: unknown) => {
          // Found and handed back as one that the queue has lost.
          app.log.debug({ err: again }, 'the end of a chunk was not written down');
        });
      },
    },
  });
}

async function runBackfills(parts: Parts, app: App, ingestion: Ingestion): Promise<BackfillRunner> {
  const { clock, log, troubles, owner, concurrency } = parts;
  const { session } = ingestion;
  const runner = createBackfillRunner({
    sql: app.database.sql,
    clock,
    queue: await ingestion.queue(),
    session,
    owner,
    concurrency,
    keep: app.config.keep.candles,
    finishOf: (id, left) => readFinish(app, session, id, left),
    onBegin: ({ id, interval, quote, coinIds }, requests) =>
      log.info({ backfill: id, interval, quote, coins: coinIds.length, requests }, `backfill ${id} goes on`),
    onEnd: ({ id, state, message, waitUntil, ...counts }) =>
      log[state === 'failed' ? 'error' : 'info'](
        { backfill: id, state, message, ...(waitUntil === null ? {} : { until: toIso(waitUntil) }), ...counts },
        `backfill ${id}: ${state}`,
      ),
    onChunk: (job, outcome) => tellChunk(parts, job, outcome),
    onFailure: (job, error, final) => tellFailure(parts, job, error, final),
    onError: (error) => troubles.met('the backfills', error),
    bringBack: app.bringBack,
    realMs: app.surroundings.realMs ?? asLong,
  });
  runner.start();
  return runner;
}

/** Until it ends: looks for chunks that the queue lost, and whether the account still has the plan that everything goes by. */
async function upkeep(
  parts: Parts,
  app: App,
  { session }: Ingestion,
  recover: () => Promise<number>,
  signal: AbortSignal,
  renew: () => void,
): Promise<void> {
  const { clock, troubles, log, config } = parts;
  for (let round = 0; !signal.aborted; round++) {
    // Before the first wait as well: whoever has just recorded one need not wait to see when it will be done.
    if (round % FORECAST_ROUNDS === 0) await reckon(parts, app, session);
    await clock.sleep(UPKEEP_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const saved = config.plan === null ? await readAccount(app.database.sql, session.accountId) : null;
      if (saved !== null && saved.plan !== session.plan.name) {
        log.info({ from: session.plan.name, to: saved.plan }, `the account has the plan ${saved.plan} now`);
        return renew();
      }
      await session.walls.reload();
      const lost = await recover();
      if (lost > 0) log.warn({ chunks: lost }, 'the queue had lost chunks; they are asked again');
      for (const what of ['the upkeep', 'the scheduler', 'the backfills', QUEUE]) troubles.over(what);
    } catch (error) {
      const reason = awayReason(error);
      troubles.met(reason === null ? 'the upkeep' : placeOf(reason), asError(error));
    }
  }
}

async function reckon({ troubles, log }: Parts, app: App, session: Session): Promise<void> {
  try {
    for (const id of await endNeedlessWaits(app, session))
      log.info({ backfill: id }, `backfill ${id} waits no more: the quota has room again`);
    await forecastQueued(app, session);
    troubles.over('the forecasts');
  } catch (error) {
    // Whoever finds out first says so: the signs of life may wait for a connection, which says that it is well again.
    if (isDatabaseAway(error)) troubles.met(DATABASE, explainDatabaseError(error, app.database.url) ?? asError(error));
    else troubles.met('the forecasts', asError(error));
  }
}
