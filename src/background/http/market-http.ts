/** The warehouse over HTTP: market data under `/v1` and `/rpc`. Operators get `/health`, `/ready` and `/metrics` there or at a separate address. */
import type { App, Releasers } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import type { Handler, Peer } from '../../contract/interface/handler.ts';
import { asError } from '../../core/as-error.ts';
import { DASHBOARD_PATHS, dashboardStarting } from '../../dashboard/paths.ts';
import type { FailureLog, Log } from '../../log.ts';
import { createMeteredAccess } from '../../service/access/metered-access.ts';
import { answerStarting } from '../../service/http/answer.ts';
import { type Listening, listen } from '../../service/http/listen.ts';
import { createService } from '../../service/service.ts';
import { isDatabaseUnavailable, isEndedEarly } from '../../store/connection/database-unavailable.ts';
import { SERVE_DATABASE_URL } from '../../store/connection/database-url.ts';
import { openReader } from '../../store/connection/reader.ts';
import { createWarehouse } from '../../views/market/warehouse.ts';
import { createWarehouseTools } from '../../views/operations/warehouse-tools.ts';
import { createStatementRunner } from '../../views/sql/statement.ts';
import type { ServiceStatus } from '../health/service-status.ts';
import { pathOf, type ServingMetrics, withMetrics } from './market-http-metrics.ts';

/** No request to the warehouse takes this long. */
const IDLE_MS = 60_000;

export type Market = { readonly handler: Handler; close(): Promise<void> };

type MarketDeps = {
  readonly app: Pick<App, 'database'>;
  readonly config: Pick<Config, 'serveDatabaseUrl' | 'serveLimits' | 'serveSql' | 'serveOrigins' | 'trustedProxies'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly failed: FailureLog;
  readonly metrics: ServingMetrics;
};

/** The variable with the address of the database that serves the data. */
export function settingOf({ serveDatabaseUrl }: Pick<Config, 'serveDatabaseUrl'>): string {
  return serveDatabaseUrl === null ? 'DATABASE_URL' : SERVE_DATABASE_URL;
}

/** The market data of an open warehouse, read as a read-only role. @throws StoreError when the database cannot be reached */
export async function openMarket({ app, config, clock, log, failed, metrics }: MarketDeps): Promise<Market> {
  const url = config.serveDatabaseUrl ?? app.database.url;
  const watchdog = url === app.database.url ? app.database.watchdog : undefined;
  const reader = await openReader({ url, setting: settingOf(config), watchdog });
  const onEndless = (pid: number) =>
    log.warn(
      { pid },
      'could not cancel a statement of runSql; Chandler told the server to end its process, and its place stays taken until then',
    );
  const statements = config.serveSql ? createStatementRunner({ url, watchdog: reader.watchdog, onEndless }) : null;
  if (!reader.hasRole)
    log.warn(
      'the role chandler_server does not exist or is not granted to this user: serving with read-only transactions of this user',
    );
  const access = createMeteredAccess({
    sql: reader.counting,
    clock,
    limits: config.serveLimits,
    onError: (error) =>
      failed({
        level: 'warn',
        message: "could not count a caller's requests in the database",
        cause: rootOf(error).message,
        name: 'metering',
        error,
      }),
  });
  const handler = createService({
    data: createWarehouse({ sql: reader.sql, clock, onCacheLookup: metrics.cacheLookup }),
    onCacheLookup: (isHit) => metrics.cacheLookup('response', isHit),
    access,
    trustedProxies: config.trustedProxies,
    clock,
    warehouse: createWarehouseTools({ sql: reader.sql, clock, runSql: statements?.run }),
    origins: config.serveOrigins,
    isUnavailable: (error) => isDatabaseUnavailable(error) || isEndedEarly(error),
    onError: requestFailures(failed),
  });
  const close = async () => {
    await access.close();
    await Promise.all([reader.close(), statements?.close()]);
  };
  return { handler, close };
}

/** Logs the errors of a server. In an outage, the same error of many callers becomes one line a minute, without a stack. */
export function requestFailures(failed: FailureLog): (error: unknown, url: string) => void {
  return (error, url) => {
    const isOutage = isDatabaseUnavailable(error);
    failed({
      level: isOutage ? 'warn' : 'error',
      message: 'a request failed',
      cause: rootOf(error).message,
      name: pathOf(url),
      // An outage is no defect, so the stack is of no use.
      fields: { path: pathOf(url), ...(isOutage ? {} : { err: error }) },
      error,
    });
  };
}

/** The wrappers of an error add the statement, which differs between requests. The root cause does not. */
function rootOf(error: unknown): Error {
  let root = asError(error);
  for (let depth = 0; depth < 8 && root.cause instanceof Error; depth++) root = root.cause;
  return root;
}

/** The paths for operators. */
const OPERATIONS = /^\/(health|ready|metrics|backfills)([/?]|$)/;

type Served = {
  readonly operations: Handler;
  /** The dashboard, served with the paths for operators. It returns null while there is no database yet. Absent when this server has no dashboard. */
  readonly dashboard?: (() => Handler | null) | undefined;
  /** Returns null while there is no database yet. */
  readonly market: () => Handler | null;
  readonly metrics: ServingMetrics;
};

/**
 * Opens the port of callers, and that of operators if it has its own address. Logs each address and what is served there, and passes that
 * of callers to `onListening`.
 */
export async function listenToAll(
  { operations: operationsAlone, dashboard, market, metrics }: Served,
  { config, log, onListening }: HttpOptions,
  operationsPaths: string,
  onError: (error: unknown, url: string) => void,
): Promise<Listening> {
  const now: Handler = Object.assign(
    async (request: Request, peer?: Peer) => market()?.(request, peer) ?? answerStarting(request),
    { fromCache: (peer: Peer) => market()?.fromCache?.(peer) ?? null },
  );
  const measured = withMetrics(now, metrics);
  const operations: Handler = async (request, peer) =>
    dashboard !== undefined && DASHBOARD_PATHS.test(peer?.target ?? '')
      ? ((await dashboard()?.(request, peer)) ?? dashboardStarting())
      : operationsAlone(request, peer);
  const isForOperators = (target: string) =>
    OPERATIONS.test(target) || (dashboard !== undefined && DASHBOARD_PATHS.test(target));
  // Decided by the target as it was sent, so that a path which a reverse proxy allowed as a market path never becomes one for operators.
  const withOperations: Handler = (request, peer) =>
    isForOperators(peer?.target ?? '') ? operations(request, peer) : measured(request, peer);
  const options = {
    onError,
    limits: { idleMs: IDLE_MS, maxPerAddress: config.connectionsPerAddress },
    trustedProxies: config.trustedProxies,
  };
  const isApart = config.operationsListen !== null;
  // A separate port: callers cannot use up the connections of operators. It opens first, so that a probe succeeds as soon as callers can connect.
  const apart = isApart ? await listen(operations, { ...config.operationsListen, ...options }) : null;
  const forCallers = Object.assign(isApart ? measured : withOperations, { fromCache: measured.fromCache });
  const server = await listen(forCallers, { ...config.listen, ...options }).catch(async (error: unknown) => {
    await apart?.close();
    throw error;
  });
  const paths = isApart ? '/v1 and /rpc' : `/v1, /rpc, ${operationsPaths}`;
  log.info({ url: server.url }, `serving ${paths} at ${server.url}`);
  if (apart !== null) log.info({ operationsUrl: apart.url }, `serving ${operationsPaths} at ${apart.url}`);
  onListening?.(server.url);
  return {
    url: server.url,
    close: async (graceMs) => void (await Promise.all([server.close(graceMs), apart?.close(graceMs)])),
  };
}

type HttpOptions = {
  readonly config: Pick<Config, 'listen' | 'operationsListen' | 'connectionsPerAddress' | 'trustedProxies'>;
  readonly log: Log;
  /** Called with the address as soon as there is one. */
  readonly onListening?: ((url: string) => void) | undefined;
};

/**
 * Closes the server first, so that no request meets a closed part, and then everything else in reverse order. Requests in progress have
 * `graceMs` to end, and the whole has `totalMs`.
 */
export async function shutDown(
  { server, releasers }: { readonly server: Listening | null; readonly releasers: Releasers },
  { status, clock, log }: { readonly status: ServiceStatus; readonly clock: Clock; readonly log: Log },
  { graceMs, totalMs }: { readonly graceMs: number; readonly totalMs: number },
): Promise<void> {
  status.phase = 'stopping';
  const closing = Promise.resolve(server?.close(graceMs)).finally(() => releasers.release());
  await Promise.race([closing, clock.sleep(totalMs)]);
  log.info('stopped');
}
