/**
 * The background service: one process that opens the database as soon as it is available, and then keeps everything fresh until it is
 * stopped. Any number of services share the work: each claims ticks, chunks and backfills; no process assigns them.
 *
 *     waiting (for database, migration, queue, account) → starting → ready → stopping
 *                  ▲                                                   │
 *                  └─────────── the account has another plan, or its key is refused: a new session
 */
import { once, setMaxListeners } from 'node:events';
import { type App, createReleasers, openApp, type Releasers } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import { asError } from '../../core/as-error.ts';
import { accountIdOf, standingRefusal } from '../../ingest/request/account.ts';
import { refusedBefore } from '../../ingest/request/configuration-errors.ts';
import { outageReason } from '../../ingest/request/outage-retry.ts';
import { createFailureLog } from '../../log.ts';
import type { Listening } from '../../service/http/listen.ts';
import { checkRoom } from '../../store/work/disk-room.ts';
import { forgetInstance } from '../../store/work/instance.ts';
import { LEASE_RENEWED_EVERY_MS } from '../../store/work/lease.ts';
import { databaseError, waitUntilAvailable, watchDatabase } from '../health/availability.ts';
import { watchLocks } from '../health/lock-watch.ts';
import { createMetrics } from '../health/metrics.ts';
import { ACCOUNT, createIncidents, DATABASE, HEARTBEAT, type ServiceStatus } from '../health/service-status.ts';
import { createSharedClock } from '../health/shared-clock.ts';
import { openMarket, shutDown } from '../http/market-http.ts';
import { createServingMetrics } from '../http/market-http-metrics.ts';
import { createDatabaseOutage } from '../operator/database-outage.ts';
import { notifyOperator } from '../operator/notifier.ts';
import type { ServiceContext, ServiceOptions } from '../service-context.ts';
import { runCounting } from './counting.ts';
import { sendHeartbeat } from './heartbeat.ts';
import { recordStart } from './recorded-start.ts';
import { openHttp } from './service-http.ts';
import { announceReady, runSession } from './service-session.ts';

/**
 * Time limits at the stop: `graceMs` for requests in progress, `totalMs` for closing everything, including these. If an embedded server
 * does not stop in time, the next command takes it over.
 */
const STOP = { graceMs: 1_500, totalMs: 3_000 };
/** Time limit for deleting the service's heartbeat at the stop, because a silent database never answers. */
const HEARTBEAT_DELETE_MS = 1_000;
/** Many workers share one database server, and one worker keeps only a few connections busy. */
const WORKERS_CONNECTIONS = 4;

/** Resolves when the service has stopped, after `signal` was aborted. @throws ConfigurationError, StoreError when only another setting would help. */
export async function runService(options: ServiceOptions): Promise<void> {
  const { log, roles, owner } = options;
  const ended = new AbortController();
  /** Aborted when the service stops, also when it stops without an external signal. */
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const useDatabaseClock = options.overrides?.useDatabaseClock ?? options.clock === systemClock;
  const clock = createSharedClock(options.clock);
  const status: ServiceStatus = { owner, roles, startedAt: clock.now(), phase: 'waiting' };
  const context: ServiceContext = {
    ...options,
    signal,
    clock,
    overrides: { ...options.overrides, useDatabaseClock },
    status,
    failed: createFailureLog(log, clock, signal),
    incidents: createIncidents(log, clock),
    metrics: createMetrics(),
    served: createServingMetrics(),
    open: { app: null, ingestion: null, market: null, peers: null, states: null },
  };
  const outage = createDatabaseOutage(context);
  const releasers = createReleasers();
  const onStop = () => log.info('stopping: work in progress is finished or released');
  setMaxListeners(0, signal);
  options.signal.addEventListener('abort', onStop, { once: true });
  let server: Listening | null = null;
  let failure: string | null = null;
  const watching = outage.watch(signal);
  try {
    if (roles.includes('http')) server = await openHttp(context);
    const app = await openStore(context, releasers);
    if (app === null) return;
    const followTime = useDatabaseClock ? () => clock.follow(app.database.sql) : async () => undefined;
    const setTime = () => followTime().then(() => true);
    if ((await waitUntilAvailable(context, DATABASE, setTime, async () => undefined)) === null) return;
    const recordEnd = await waitUntilAvailable(
      context,
      DATABASE,
      () =>
        recordStart(context, app).catch((error: unknown) =>
          // A missing right ends the service: waiting does not grant it.
          Promise.reject(outageReason(error) === null ? error : databaseError(error, app)),
        ),
      async () => undefined,
    );
    if (recordEnd === null) return;
    releasers.add(() => Promise.race([recordEnd(failure).catch(() => undefined), clock.sleep(HEARTBEAT_DELETE_MS)]));
    const lasting = Promise.all([
      keepInstanceAlive(context, app, followTime),
      notifyOperator(context, app, outage),
      watchLocks(app.database, context),
      watchKey(context, app),
      runCounting(context, app),
    ]);
    releasers.add(() => Promise.race([lasting.then(() => undefined), clock.sleep(HEARTBEAT_DELETE_MS)]));
    if (roles.includes('scheduler') || roles.includes('worker')) {
      // When the database or the queue is lost while a session begins, only the session ends, and the service continues.
      while (!signal.aborted) await waitUntilAvailable(context, 'the session', () => runSession(context, app), null);
    } else {
      announceReady(context);
      if (!signal.aborted) await once(signal, 'abort');
    }
  } catch (error) {
    failure = asError(error).message;
    throw error;
  } finally {
    // Ends the loops in `lasting`, and so deletes the heartbeat.
    ended.abort();
    await shutDown({ server, releasers }, context, STOP);
    await watching;
    options.signal.removeEventListener('abort', onStop);
  }
}

/** Opens the database and, over HTTP, the market on it, as soon as they are available. Null when the service is stopped first. */
async function openStore(context: ServiceContext, releasers: Releasers): Promise<App | null> {
  const { config, clock, log, roles, migrate, overrides, open } = context;
  const servesHttp = roles.includes('http');
  const opening = () =>
    openApp(config, {
      clock,
      log,
      schema: migrate ? 'migrate' : 'prepare',
      connections: servesHttp ? 10 : WORKERS_CONNECTIONS,
      overrides,
    });
  const app = await waitUntilAvailable(context, DATABASE, opening, (late) => late.close());
  if (app === null) return null;
  releasers.add(() => app.close());
  open.app = app;
  if (!servesHttp) return app;
  const openingMarket = () => openMarket({ ...context, app, metrics: context.served });
  const market = await waitUntilAvailable(context, DATABASE, openingMarket, (late) => late.close());
  if (market === null) return null;
  releasers.add(market.close);
  open.market = market;
  return app;
}

/** Renews the service's heartbeat and follows the database's time, from when the database is open until the end. */
async function keepInstanceAlive(context: ServiceContext, app: App, followTime: () => Promise<void>): Promise<void> {
  const { sql } = app.database;
  const { clock, incidents, signal, owner } = context;
  let roomAt = Number.NEGATIVE_INFINITY;
  const followAndBeat = async () => {
    await followTime();
    if (signal.aborted) return;
    await sendHeartbeat(context, app);
    const now = clock.now();
    if (!incidents.isOpen(DATABASE) && Math.abs(now - roomAt) < ROOM_MS) return;
    await checkRoom(sql);
    roomAt = now;
  };
  const watch = { incidents, clock, signal, everyMs: LEASE_RENEWED_EVERY_MS, what: HEARTBEAT };
  await watchDatabase(app, followAndBeat, watch);
  await forgetInstance(sql, owner).catch((error: unknown) =>
    app.log.debug({ err: error }, 'could not delete the heartbeat'),
  );
}

/** How often the service checks the disk for room. Not with each heartbeat: a server may log each file that a statement writes. */
const ROOM_MS = 60_000;

const KEY_LOOK_MS = 20_000;

/** For a service that sends no requests to the upstream: it also reports when the upstream refuses the key. */
async function watchKey({ config, clock, incidents, signal, roles }: ServiceContext, app: App): Promise<void> {
  if (roles.some((role) => role !== 'http')) return;
  const key = { id: accountIdOf(config.apiKey, config.baseUrl), sentAs: config.authScheme };
  while (!signal.aborted) {
    try {
      const refusal = await standingRefusal(app.database.sql, key);
      if (refusal === null) incidents.resolve(ACCOUNT);
      else incidents.report(ACCOUNT, new Error(refusedBefore(refusal.message, refusal.at, refusal.retryAt)));
    } catch (error) {
      // The heartbeat reports a database that is unavailable.
      app.log.debug({ err: error }, 'could not read whether the key is refused');
    }
    await clock.sleep(KEY_LOOK_MS, signal).catch(() => undefined);
  }
}
