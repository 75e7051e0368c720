/**
 * The background service: one process that opens the database as soon as it is there, and then keeps everything fresh until it is
 * told to stop. Any number of them share the work: ticks, chunks and backfills are claimed, never assigned.
 *
 *     waiting (for database, migration, queue, account) → starting → ready → stopping
 *                  ▲                                                   │
 *                  └─────────── the account has another plan: a new session, with its limits, schedules and queues
 */
import { setMaxListeners } from 'node:events';
import { type App, createReleasers, openApp } from '../../app.ts';
import { systemClock } from '../../clock.ts';
import { unlessAborted } from '../../core/unless-aborted.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { explainDatabaseError } from '../../store/connection/store-error.ts';
import { forgetInstance, keepInstance } from '../../store/work/instance.ts';
import { LEASE_RENEWED_EVERY_MS } from '../../store/work/lease.ts';
import { asError, createTroubles } from '../health/incidents.ts';
import { createMetrics } from '../health/metrics.ts';
import { DATABASE, type ServiceStatus } from '../health/service-status.ts';
import { whenThere } from '../health/wait-until-available.ts';
import { openMarket } from '../http/market-http.ts';
import { createServingMetrics } from '../http/market-http-metrics.ts';
import { notifyOperator } from './notifier.ts';
import type { Parts, ServeOptions } from './service-context.ts';
import { openHttp } from './service-http.ts';
import { live, ready } from './service-session.ts';
import { createSharedClock, type SharedClock } from './shared-clock.ts';

/** What is to be closed at the end may take so long; an embedded server that does not stop in time is taken over by the next command. */
const GOODBYE_MS = 3_000;
/** Of it, for signing off: a database that is silent never hears it. */
const FAREWELL_MS = 1_000;
/** Of it, for answers that are under way. */
const HTTP_GRACE_MS = 1_500;
/** Many workers share one server, and what one of them has under way keeps few of its connections busy. */
const WORKERS_CONNECTIONS = 4;

/** Resolves when it was told to stop and has. @throws ConfigurationError, StoreError when only another setting would help. */
export async function serve(options: ServeOptions): Promise<void> {
  const { log, roles, owner, signal, config } = options;
  const useDatabaseClock = options.surroundings?.useDatabaseClock ?? options.clock === systemClock;
  const clock = createSharedClock(options.clock);
  const keepTime = useDatabaseClock ? clock.follow : async () => undefined;
  const troubles = createTroubles(log, clock);
  const status: ServiceStatus = { owner, roles, startedAt: clock.now(), phase: 'waiting' };
  const parts: Parts = {
    ...options,
    clock,
    surroundings: { ...options.surroundings, useDatabaseClock },
    status,
    troubles,
    metrics: createMetrics(),
    served: createServingMetrics(),
    open: { app: null, ingestion: null, market: null },
  };
  const releasers = createReleasers();
  const onStop = () => log.info('told to stop: what is in flight is finished or given back');
  setMaxListeners(0, signal);
  signal.addEventListener('abort', onStop, { once: true });
  let closeServer = (): Promise<void> => Promise.resolve();
  try {
    if (roles.includes('http')) {
      const server = await openHttp(parts);
      closeServer = once(() => server.close(HTTP_GRACE_MS));
      releasers.add(closeServer);
      log.info({ url: server.url }, `serving /v1, /rpc, /health, /ready, /metrics and /backfills at ${server.url}`);
      options.onListening?.(server.url);
    }
    const opening = () =>
      openApp(config, {
        clock,
        log,
        schema: options.migrate ? 'migrate' : 'prepare',
        connections: roles.includes('http') ? 10 : WORKERS_CONNECTIONS,
        surroundings: parts.surroundings,
      });
    const app = await whenThere(parts, DATABASE, opening, (late) => late.close());
    if (app === null) return;
    releasers.add(() => app.close());
    parts.open.app = app;
    if (roles.includes('http')) {
      const openOurs = () => openMarket({ ...parts, app, metrics: parts.served });
      const market = await whenThere(parts, DATABASE, openOurs, (late) => late.close());
      if (market === null) return;
      releasers.add(market.close);
      // Before it: nobody is to be served by what is closed already.
      releasers.add(closeServer);
      parts.open.market = market;
    }
    const setTime = () => keepTime(app.database.sql).then(() => true);
    if ((await whenThere(parts, DATABASE, setTime, async () => undefined)) === null) return;
    const keeping = keepAlive(parts, app, keepTime);
    const telling = notifyOperator(parts, app);
    releasers.add(() =>
      Promise.race([Promise.all([keeping, telling]).then(() => undefined), clock.sleep(FAREWELL_MS)]),
    );
    const works = roles.includes('scheduler') || roles.includes('worker');
    if (!works) {
      ready(parts);
      await aborted(signal);
    }
    // What goes away while a session begins ends that session, not the service.
    while (works && !signal.aborted) await whenThere(parts, 'the session', () => live(parts, app), null);
  } finally {
    status.phase = 'stopping';
    await Promise.race([releasers.release(), clock.sleep(GOODBYE_MS)]);
    signal.removeEventListener('abort', onStop);
    log.info('stopped');
  }
}

/** Whoever asks again gets the same promise. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => {
    done ??= work();
    return done;
  };
}

/** Keeps the lease of this service and its time, from when the database is open until the end. */
async function keepAlive(
  { clock, troubles, signal, owner, roles, status }: Parts,
  app: App,
  keepTime: SharedClock['follow'],
): Promise<void> {
  const { sql } = app.database;
  while (!signal.aborted) {
    try {
      await unlessAborted(keepTime(sql), signal);
      const instance = { owner, roles, startedAt: status.startedAt, heartbeatAt: clock.now() };
      await unlessAborted(keepInstance(sql, instance), signal);
      troubles.over(DATABASE);
    } catch (error) {
      if (signal.aborted) break;
      if (isDatabaseAway(error)) {
        troubles.met(DATABASE, explainDatabaseError(error, app.database.url) ?? asError(error));
        await unlessAborted(app.bringBack(), signal).catch((again: unknown) => {
          if (!signal.aborted) troubles.met('the embedded database', asError(again));
        });
      } else troubles.met('the signs of life', asError(error));
    }
    await clock.sleep(LEASE_RENEWED_EVERY_MS, signal).catch(() => undefined);
  }
  await forgetInstance(sql, owner).catch((error: unknown) => app.log.debug({ err: error }, 'not signed off'));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
