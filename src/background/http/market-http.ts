/** The warehouse over HTTP: its market data under `/v1` and `/rpc`, and how it is at `/health`, `/ready` and `/metrics`, at one address. */
import type { App } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import type { Handler, Peer } from '../../contract/interface/handler.ts';
import type { Log } from '../../log.ts';
import { createMeteredAccess } from '../../service/access/metered-access.ts';
import { answerNotYet } from '../../service/http/answer.ts';
import { type Listening, listen } from '../../service/http/listen.ts';
import { createService } from '../../service/service.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import { SERVE_DATABASE_URL } from '../../store/connection/database-url.ts';
import { openReader } from '../../store/connection/reader.ts';
import { createWarehouse } from '../../views/market/warehouse.ts';
import { createStatementRunner } from '../../views/operations/statement.ts';
import { createWarehouseTools } from '../../views/operations/warehouse-tools.ts';
import { type ServingMetrics, withFigures } from './market-http-metrics.ts';

/** Nothing that the warehouse answers takes so long. */
const IDLE_MS = 60_000;

export type Market = { readonly handler: Handler; close(): Promise<void> };

export type MarketDeps = {
  readonly app: Pick<App, 'database' | 'bringBack'>;
  readonly config: Pick<Config, 'serveDatabaseUrl' | 'serveLimits' | 'serveSql' | 'serveOrigins' | 'trustedProxies'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ServingMetrics;
};

/** Where the address that is served from was given. */
export function settingOf({ serveDatabaseUrl }: Pick<Config, 'serveDatabaseUrl'>): string {
  return serveDatabaseUrl === null ? 'DATABASE_URL' : SERVE_DATABASE_URL;
}

/** The market data of an open warehouse, read by a role that can do nothing else. @throws StoreError when it cannot be reached */
export async function openMarket({ app, config, clock, log, metrics }: MarketDeps): Promise<Market> {
  const url = config.serveDatabaseUrl ?? app.database.url;
  const line = url === app.database.url ? app.database.line : undefined;
  const reader = await openReader({ url, setting: settingOf(config), line });
  const statements = config.serveSql ? createStatementRunner({ url, line: reader.line }) : null;
  if (!reader.hasRole)
    log.warn(
      'the role chandler_server is not there or not granted to this user: served by read-only transactions of this user',
    );
  let bringingBack = false;
  const bringBack = () => {
    if (bringingBack) return;
    bringingBack = true;
    const done = () => {
      bringingBack = false;
    };
    app.bringBack().then(done, (error: unknown) => {
      log.warn({ err: error }, 'the embedded database could not be started again');
      done();
    });
  };
  const access = createMeteredAccess({
    sql: reader.counting,
    clock,
    limits: config.serveLimits,
    onError: (error) => log.warn({ err: error }, 'what a caller has asked could not be counted exactly'),
  });
  const handler = createService({
    data: createWarehouse({ sql: reader.sql, clock, onKept: metrics.kept }),
    access,
    trustedProxies: config.trustedProxies,
    clock,
    warehouse: createWarehouseTools(reader.sql, statements?.run),
    origins: config.serveOrigins,
    isAway: isDatabaseAway,
    onError: (error, url) => {
      const away = isDatabaseAway(error);
      if (away) bringBack();
      log[away ? 'warn' : 'error']({ err: error, path: pathOf(url) }, 'a request could not be answered');
    },
  });
  const close = async () => {
    await access.close();
    await Promise.all([reader.close(), statements?.close()]);
  };
  return { handler, close };
}

/** Without what was asked: it may hold what nobody else should read. */
export function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : url;
}

const OPERATIONS = /^\/(health|ready|metrics|backfills)(\/|$)/;

/** `market` is null while there is no database yet. */
export function listenToAll(
  {
    operations,
    market,
    metrics,
  }: { readonly operations: Handler; readonly market: () => Handler | null; readonly metrics: ServingMetrics },
  {
    config: { listen: address, connectionsPerAddress, trustedProxies },
    onError,
  }: {
    readonly config: Pick<Config, 'listen' | 'connectionsPerAddress' | 'trustedProxies'>;
    readonly onError: (error: unknown, url: string) => void;
  },
): Promise<Listening> {
  const now: Handler = Object.assign(
    async (request: Request, peer?: Peer) => market()?.(request, peer) ?? answerNotYet(request),
    // What is no market's is in nobody's memory.
    { again: (peer: Peer) => market()?.again?.(peer) ?? null },
  );
  const measured = withFigures(now, metrics);
  const handler = (request: Request, peer?: Peer) => {
    const path = request.url.slice(request.url.indexOf('/', request.url.indexOf('//') + 2)).replace(/[?#].*$/s, '');
    return OPERATIONS.test(path) ? operations(request, peer) : measured(request, peer);
  };
  return listen(Object.assign(handler, { again: measured.again }), {
    ...address,
    onError,
    limits: { idleMs: IDLE_MS, maxPerAddress: connectionsPerAddress },
    trustedProxies,
  });
}
