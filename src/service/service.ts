/** The interface of the API document over any `MarketData`, REST and tools: the warehouse's own server, and the simulator's. */
import type { BlockList } from 'node:net';
import { Hono, type MiddlewareHandler } from 'hono';
import { getPathNoStrict } from 'hono/utils/url';
import type { Clock } from '../clock.ts';
import { AWAY, AWAY_SECONDS } from '../contract/answer/errors.ts';
import type { Nothing } from '../contract/answer/not-found.ts';
import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName, UNANSWERED } from '../contract/interface/endpoints.ts';
import type { Handler, Peer } from '../contract/interface/handler.ts';
import { RPC_PATH } from '../contract/interface/json-rpc.ts';
import { BASE_PATH } from '../contract/interface/paths.ts';
import type { WarehouseTools } from '../contract/interface/warehouse-tools.ts';
import type { Access } from '../contract/plan/access.ts';
import type { MarketData } from '../contract/record/market-data.ts';
import { forwardedAddress } from '../core/address.ts';
import { admission } from './http/admission.ts';
import { answerPreflight, EXPOSED, refuse, refuseRoute } from './http/answer.ts';
import type { Answer } from './http/request-input.ts';
import { createAgain } from './http/response-cache.ts';
import type { ServiceEnv } from './http/service-env.ts';
import { accountRoutes } from './routes/account-routes.ts';
import { catalogueRoutes } from './routes/catalogue-routes.ts';
import { DOCS_PATHS, docsRoutes } from './routes/docs-routes.ts';
import { historyRoutes } from './routes/history-routes.ts';
import { marketRoutes } from './routes/market-routes.ts';
import { rpcRoutes } from './rpc/rpc-routes.ts';
import { createToolbox } from './rpc/toolbox.ts';

export type ServiceParts = {
  readonly data: MarketData<Nothing>;
  readonly access: Access;
  readonly clock: Clock;
  /** Whose word about who asks is believed (`X-Forwarded-For`); null: nobody's. */
  readonly trustedProxies?: BlockList | null;
  /** Told of what nobody expected; the caller only sees a 500. */
  readonly onError: (error: unknown, url: string) => void;
  /** Is it a source that cannot be reached for now? Then the client is told to come again. */
  readonly isAway?: ((error: unknown) => boolean) | undefined;
  /** What only a warehouse can be asked; without it there are the tools of the API document. */
  readonly warehouse?: WarehouseTools | undefined;
  /** Origins of web pages that may use the tools, besides those of this machine; `*`: all. */
  readonly origins?: readonly string[] | undefined;
};

export function createService(parts: ServiceParts): Handler {
  const { access, clock, onError, trustedProxies = null } = parts;
  const date = createDate(clock);
  const app = new Hono<ServiceEnv>({ getPath: withoutSlashesTooMany });
  app.use((c, next) => {
    c.set('date', date());
    return next();
  });
  for (const path of [RPC_PATH, ...DOCS_PATHS]) app.use(path, openToAll);
  app.route(RPC_PATH, rpcRoutes({ ...parts, toolbox: createToolbox(parts) }));
  app.options('*', (c) => answerPreflight(c));
  app.use(`${BASE_PATH}/*`, admission(access));
  app.route(BASE_PATH, restRoutes(parts));
  app.route('/', docsRoutes());
  app.notFound((c) => refuseRoute(c));
  app.onError((error, c) => {
    onError(error, c.req.url);
    if (parts.isAway?.(error)) return refuse(c, 503, AWAY, AWAY_SECONDS);
    return refuse(c, 500, 'An unexpected server error has occurred');
  });
  const addressOf = (peer: Peer, forwarded: string | null) =>
    trustedProxies === null ? peer.address : forwardedAddress(peer.address, forwarded, trustedProxies);
  const again = createAgain({
    access,
    date,
    addressOf: (peer) => addressOf(peer, textOf(peer.headers?.['x-forwarded-for'])),
  });
  const handler = async (request: Request, peer?: Peer) => {
    const asked = withoutMarksTooMany(request);
    if (peer === undefined) return app.fetch(asked, {});
    return app.fetch(asked, {
      ...peer,
      address: addressOf(peer, request.headers.get('X-Forwarded-For')),
      admitted: again.admittedOf(peer),
      keep: again.keepFor(peer),
    });
  };
  return Object.assign(handler, { again: again.give });
}

/** As a `Request` gives a header that was sent several times. */
function textOf(header: string | readonly string[] | undefined): string | null {
  return typeof header === 'object' ? header.join(', ') : (header ?? null);
}

/** A client of the upstream's own vendor asks for `/tickers//btc-bitcoin`: a slash too many is none (decision 22). */
function withoutSlashesTooMany(request: Request): string {
  const path = getPathNoStrict(request);
  return path.includes('//') ? path.replaceAll(/\/{2,}/g, '/') : path;
}

/** Another one of them ends every address with a question mark, also that which has one: `?interval=1h?` (decision 22). */
function withoutMarksTooMany(request: Request): Request {
  const { url, method } = request;
  if (!url.endsWith('?') || (method !== 'GET' && method !== 'HEAD')) return request;
  // Not before they are needed: to make them takes longer than most answers.
  const { headers, signal } = request;
  return new Request(url.replace(/\?+$/, ''), { method, headers, signal });
}

/** Every endpoint of the contract, and no other: one without an answer does not compile. */
export function restRoutes(parts: ServiceParts): Hono<ServiceEnv> {
  const answers: Readonly<Record<EndpointName, Answer>> = {
    ...historyRoutes(parts),
    ...marketRoutes(parts),
    ...catalogueRoutes(parts),
    ...accountRoutes(parts),
  };
  const routes = new Hono<ServiceEnv>();
  // Before `/coins/{coin_id}`, of which the first one would be an id.
  for (const path of UNANSWERED) routes.all(routePath(path), (c) => refuseRoute(c));
  for (const name of ENDPOINT_NAMES) routes.on(['GET', 'POST'], routePath(ENDPOINTS[name].path), answers[name]);
  return routes;
}

/** `/coins/{coin_id}` as the router writes it. */
function routePath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The date is the clock's, so that a client on a simulated clock can reckon the age of an answer. */
function createDate(clock: Clock): () => string {
  let second = NaN;
  let text = '';
  return () => {
    const now = Math.floor(clock.now() / 1_000);
    if (now !== second) text = new Date(now * 1_000).toUTCString();
    second = now;
    return text;
  };
}

/** For the answers that are not made by `answer.ts`; before they are made, since changing one that exists copies it. */
const openToAll: MiddlewareHandler<ServiceEnv> = (c, next) => {
  c.header('Date', c.get('date'));
  c.header('Access-Control-Allow-Origin', '*');
  c.header('Access-Control-Expose-Headers', EXPOSED);
  c.header('Vary', 'Accept-Encoding, Authorization');
  c.header('X-Content-Type-Options', 'nosniff');
  return next();
};
