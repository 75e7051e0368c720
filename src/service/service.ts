/** The interface of the API document over any `MarketData`, REST and tools: the warehouse's own server, and the simulator's. */
import { Hono, type MiddlewareHandler } from 'hono';
import type { Clock } from '../clock.ts';
import type { Access } from '../contract/access.ts';
import type { Handler } from '../contract/handler.ts';
import { RPC_PATH } from '../contract/json-rpc.ts';
import type { MarketData } from '../contract/market-data.ts';
import { BASE_PATH } from '../contract/paths.ts';
import type { WarehouseTools } from '../contract/warehouse-tools.ts';
import { accountRoutes } from './account-routes.ts';
import { admission } from './admission.ts';
import { refuse, refuseRoute } from './answer.ts';
import { marketRoutes } from './market-routes.ts';
import { ohlcvRoutes } from './ohlcv-routes.ts';
import { rpcRoutes } from './rpc-routes.ts';
import type { ServiceEnv } from './service-env.ts';
import { createToolbox } from './toolbox.ts';

export type ServiceParts = {
  readonly data: MarketData;
  readonly access: Access;
  readonly clock: Clock;
  /** Told of what nobody expected; the caller only sees a 500. */
  readonly onError: (error: unknown, url: string) => void;
  /** What only a warehouse can be asked; without it there are the tools of the API document. */
  readonly warehouse?: WarehouseTools | undefined;
  /** Origins of web pages that may use the tools, besides those of this machine; `*`: all. */
  readonly origins?: readonly string[] | undefined;
};

export function createService(parts: ServiceParts): Handler {
  const { data, access, clock, onError } = parts;
  const app = new Hono<ServiceEnv>({ strict: false });
  app.use(everyAnswer(clock));
  app.route(RPC_PATH, rpcRoutes({ ...parts, toolbox: createToolbox(parts) }));
  app.options('*', (c) => c.body(null, 204, PREFLIGHT));
  app.use(`${BASE_PATH}/*`, admission(access));
  app.route(BASE_PATH, ohlcvRoutes({ data, access, clock }));
  app.route(BASE_PATH, marketRoutes({ data }));
  app.route(BASE_PATH, accountRoutes({ access }));
  app.notFound((c) => refuseRoute(c));
  app.onError((error, c) => {
    onError(error, c.req.url);
    return refuse(c, 500, 'An unexpected server error has occurred');
  });
  return async (request, peer) => app.fetch(request, peer ?? {});
}

const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, OPTIONS',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type',
  'Access-Control-Max-Age': '86400',
};

/** The date is the clock's, so that a client on a simulated clock can reckon the age of an answer. */
function everyAnswer(clock: Clock): MiddlewareHandler<ServiceEnv> {
  return async (c, next) => {
    // Before the answer is made, not after: changing one that exists copies it.
    c.header('Date', new Date(clock.now()).toUTCString());
    c.header('Access-Control-Allow-Origin', '*');
    c.header('Vary', 'Accept-Encoding, Authorization');
    await next();
  };
}
