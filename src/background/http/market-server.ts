/** `chandler serve`: the warehouse over HTTP and nothing else, until it is stopped. Any number of processes may serve at once. */
import { type App, createReleasers, openApp, type Releasers } from '../../app.ts';
import { type Clock, systemClock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { createFailureLog, type Log } from '../../log.ts';
import type { Listening } from '../../service/http/listen.ts';
import { createOperations } from '../../service/operations.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { waitUntilAvailable, watchDatabase } from '../health/availability.ts';
import { watchLocks } from '../health/lock-watch.ts';
import { createIncidents, DATABASE, healthOf, isReady, type ServiceStatus } from '../health/service-status.ts';
import { createSharedClock } from '../health/shared-clock.ts';
import { listenToAll, type Market, openMarket, requestFailures, settingOf, shutDown } from './market-http.ts';
import { createServingMetrics } from './market-http-metrics.ts';

type ServeMarketOptions = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** `host:pid`. */
  readonly owner: string;
  /** Aborted to stop the server. */
  readonly signal: AbortSignal;
  /** Called with the address as soon as there is one. */
  readonly onListening?: (url: string) => void;
  /** Records the start in the audit log. Resolves to the function that records the end. */
  readonly recordStart?: (app: App) => Promise<() => Promise<void>>;
};

/** Time limits at the stop: `graceMs` for requests in progress, `totalMs` for closing everything, including these. */
const STOP = { graceMs: 5_000, totalMs: 9_000 };
const CHECK_MS = 5_000;

/** Resolves when the server has stopped, after `signal` was aborted. @throws StoreError when only another setting would help */
export async function serveMarket(options: ServeMarketOptions): Promise<void> {
  const { config, log, owner, signal } = options;
  // All processes together enforce one rate on callers, so they must agree on the time.
  const clock = createSharedClock(options.clock);
  const incidents = createIncidents(log, clock);
  const metrics = createServingMetrics();
  const status: ServiceStatus = { owner, roles: ['http'], startedAt: clock.now(), phase: 'waiting' };
  const releasers = createReleasers();
  const setting = settingOf(config);
  let server: Listening | null = null;
  let market: Market | null = null;
  const failed = createFailureLog(log, clock, signal);
  const onError = requestFailures(failed);
  const operations = createOperations({
    health: () => ({ isReady: isReady(status, incidents), body: { ...healthOf(status, incidents, clock.now()) } }),
    attestation: null,
    metrics: async () => ({ contentType: metrics.registry.contentType, text: await metrics.registry.metrics() }),
    backfills: null,
    onError,
  });
  try {
    const served = { operations, market: () => market?.handler ?? null, metrics };
    server = await listenToAll(served, options, '/health, /ready and /metrics', onError);
    // When reads have their own address, the server does not need the other one.
    const settings = config.serveDatabaseUrl === null ? config : { ...config, databaseUrl: config.serveDatabaseUrl };
    const waiting = { status, incidents, clock, signal };
    const opening = () =>
      openApp(settings, { clock, log, schema: 'require' }).catch((error: unknown) => {
        throw error instanceof StoreError ? error.of(setting) : error;
      });
    const app = await waitUntilAvailable(waiting, DATABASE, opening, (late) => late.close());
    if (app === null) return;
    releasers.add(() => app.close());
    const { sql } = app.database;
    const followTime = () => (options.clock === systemClock ? clock.follow(sql) : sql`select`.then(() => undefined));
    const look = async () => {
      await followTime();
      if (config.serveLimits) await mustCount(sql, setting);
      return true;
    };
    if ((await waitUntilAvailable(waiting, DATABASE, look, async () => undefined)) === null) return;
    if (!(await record(options, app, waiting, releasers))) return;
    const openingMarket = () => openMarket({ app, config, clock, log, failed, metrics });
    market = await waitUntilAvailable(waiting, DATABASE, openingMarket, (late) => late.close());
    if (market === null) return;
    releasers.add(market.close);
    status.phase = 'ready';
    log.info({ owner }, 'ready');
    const watch = { incidents, clock, signal, everyMs: CHECK_MS, setting, what: DATABASE };
    await Promise.all([watchDatabase(app, look, watch), watchLocks(app.database, { incidents, clock, log, signal })]);
  } finally {
    await shutDown({ server, releasers }, { status, clock, log }, STOP);
  }
}

/** Requests of callers with limits are counted in the database. @throws StoreError when the database cannot store the counts */
async function mustCount(sql: Sql, setting: string): Promise<void> {
  const [row] = await sql<{ is: boolean }[]>`select current_setting('transaction_read_only') = 'on' as is`;
  if (row!.is)
    throw new StoreError(
      `the database of ${setting} is read-only (a standby?), and the requests of callers are counted there`,
      `point ${setting} at the primary, or set CHANDLER_SERVE_LIMITS=off`,
    );
}

/** Time limit for recording the end at the stop, because a silent database never answers. */
const RECORD_MS = 1_000;

/**
 * Records the start, and adds the record of the end to `releasers`. A database where this user may not write is served all the same.
 * Resolves to false when the server is stopped first.
 */
async function record(
  { recordStart, log }: ServeMarketOptions,
  app: App,
  waiting: Parameters<typeof waitUntilAvailable>[0],
  releasers: Releasers,
): Promise<boolean> {
  if (recordStart === undefined) return true;
  const recording = () =>
    recordStart(app).catch((error: unknown) => {
      if (!MAY_NOT_WRITE.has((error as { readonly code?: string }).code ?? '')) throw error;
      log.info('this start is not in the audit log: the database is read-only, or its user may not write there');
      return async () => undefined;
    });
  const recordEnd = await waitUntilAvailable(waiting, DATABASE, recording, async () => undefined);
  if (recordEnd === null) return false;
  releasers.add(() => Promise.race([recordEnd().catch(() => undefined), app.clock.sleep(RECORD_MS)]));
  return true;
}

/** SQLSTATEs of a standby, and of a user without the right to write. */
const MAY_NOT_WRITE = new Set(['25006', '42501']);
