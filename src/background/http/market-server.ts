/** `chandler serve`: the warehouse over HTTP and nothing else, until it is told to stop. Any number of processes may do so at once. */
import { type App, createReleasers, openApp } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { unlessAborted } from '../../core/unless-aborted.ts';
import type { Log } from '../../log.ts';
import { createOperations } from '../../service/operations.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { explainDatabaseError, StoreError } from '../../store/connection/store-error.ts';
import { asError, createTroubles } from '../health/incidents.ts';
import { DATABASE, healthOf, isReady, type ServiceStatus } from '../health/service-status.ts';
import { whenThere } from '../health/wait-until-available.ts';
import { listenToAll, type Market, openMarket, settingOf } from './market-http.ts';
import { createServingMetrics } from './market-http-metrics.ts';

export type ServeMarketOptions = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** `host:pid`. */
  readonly owner: string;
  /** Aborted to end it. */
  readonly signal: AbortSignal;
  /** Told of the address, when there is one. */
  readonly onListening?: (url: string) => void;
};

/** Requests under way may take so long when it is told to stop. */
const GRACE_MS = 5_000;
const GOODBYE_MS = 9_000;
const LOOK_MS = 5_000;

/** Resolves when it was told to stop and has. @throws StoreError when only another setting would help. */
export async function serveMarket(options: ServeMarketOptions): Promise<void> {
  const { config, clock, log, owner, signal } = options;
  const troubles = createTroubles(log, clock);
  const metrics = createServingMetrics();
  const status: ServiceStatus = { owner, roles: ['http'], startedAt: clock.now(), phase: 'waiting' };
  const releasers = createReleasers();
  let market: Market | null = null;
  const onError = (error: unknown) => log.error({ err: error }, 'a request could not be answered');
  const operations = createOperations({
    health: () => ({ isReady: isReady(status, troubles), body: { ...healthOf(status, troubles, clock.now()) } }),
    metrics: async () => ({ contentType: metrics.registry.contentType, text: await metrics.registry.metrics() }),
    backfills: null,
    onError,
  });
  try {
    const server = await listenToAll(
      { operations, market: () => market?.handler ?? null, metrics },
      { config, onError },
    );
    let closing: Promise<void> | undefined;
    const closeServer = () => {
      closing ??= server.close(GRACE_MS);
      return closing;
    };
    releasers.add(closeServer);
    log.info({ url: server.url }, `serving at ${server.url}`);
    options.onListening?.(server.url);
    // A reader's own address is all it needs, where there is one.
    const settings = config.serveDatabaseUrl === null ? config : { ...config, databaseUrl: config.serveDatabaseUrl };
    const waiting = { status, troubles, clock, signal };
    const app = await whenThere(
      waiting,
      DATABASE,
      () =>
        openApp(settings, { clock, log, schema: 'require' }).catch((error: unknown) => {
          throw error instanceof StoreError ? error.of(settingOf(config)) : error;
        }),
      (late) => late.close(),
    );
    if (app === null) return;
    releasers.add(() => app.close());
    const opening = () => openMarket({ app, config, clock, log, metrics });
    market = await whenThere(waiting, DATABASE, opening, (late) => late.close());
    if (market === null) return;
    const { close } = market;
    releasers.add(close);
    // First of all: nobody is to be served by what is closed already.
    releasers.add(closeServer);
    status.phase = 'ready';
    log.info({ owner }, 'ready');
    await watch(app, { clock, signal, troubles, status, setting: settingOf(config) });
  } finally {
    status.phase = 'stopping';
    await Promise.race([releasers.release(), clock.sleep(GOODBYE_MS)]);
    log.info('stopped');
  }
}

/** Until it is told to stop: looks whether the database is there, so that `/ready` tells, and starts an embedded one again. */
async function watch(
  app: App,
  {
    clock,
    signal,
    troubles,
    status,
    setting,
  }: Pick<ServeMarketOptions, 'clock' | 'signal'> & {
    readonly setting: string;
    readonly troubles: ReturnType<typeof createTroubles>;
    readonly status: ServiceStatus;
  },
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      await unlessAborted(app.database.sql`select`, signal);
      troubles.over(DATABASE);
      status.phase = 'ready';
    } catch (error) {
      if (signal.aborted) return;
      troubles.met(DATABASE, explainDatabaseError(error, app.database.url)?.of(setting) ?? asError(error));
      status.phase = 'waiting';
      if (isDatabaseAway(error))
        await unlessAborted(app.bringBack(), signal).catch((again: unknown) => {
          if (!signal.aborted) troubles.met('the embedded database', asError(again));
        });
    }
  }
}
