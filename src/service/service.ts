/** Serves the interface of the API document (REST and tools) over any `MarketData`: the warehouse's or the simulator's. */
import type { BlockList } from 'node:net';
import { Hono, type MiddlewareHandler } from 'hono';
import { getPathNoStrict } from 'hono/utils/url';
import type { Clock } from '../clock.ts';
import { DATABASE_UNAVAILABLE, RETRY_AFTER_SECONDS, UNANSWERED_PATH } from '../contract/answer/errors.ts';
import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName, UNANSWERED } from '../contract/interface/endpoints.ts';
import type { Handler, Peer } from '../contract/interface/handler.ts';
import { RPC_PATHS } from '../contract/interface/json-rpc.ts';
import { BASE_PATH } from '../contract/interface/paths.ts';
import { forwardedAddress } from '../core/caller/address.ts';
import { DOCS_PATHS, docsRoutes } from './docs/docs-routes.ts';
import { admission } from './http/admission.ts';
import { answerPreflight, COMMON_HEADERS, refuse, refuseMethod, refuseRoute } from './http/answer.ts';
import type { Answer, ServiceEnv } from './http/request-input.ts';
import { cached, createFromCache, createResponseCache, type ResponseCache } from './http/response-cache.ts';
import { accountRoutes } from './routes/account-routes.ts';
import { catalogueRoutes } from './routes/catalogue-routes.ts';
import { historyRoutes } from './routes/history-routes.ts';
import { marketRoutes } from './routes/market-routes.ts';
import { rpcRoutes } from './rpc/rpc-routes.ts';
import { createToolbox, type ToolboxDeps } from './rpc/toolbox.ts';

type ServiceDeps = ToolboxDeps & {
  /** The service trusts `X-Forwarded-For` from these addresses; null: from no address. */
  readonly trustedProxies?: BlockList | null;
  /** How long after midnight `/ohlcv/latest` switches to the day that has ended; default: at once. */
  readonly latestTurnsAfterMs?: number | undefined;
  /** Origins of web pages that may use the tools, besides those of this machine; `*` allows all. */
  readonly origins?: readonly string[] | undefined;
  /** Called for each answer that may be cached: was it sent from the response cache? */
  readonly onCacheLookup?: ((isHit: boolean) => void) | undefined;
};

export function createService(deps: ServiceDeps): Handler {
  const { access, clock, onError, trustedProxies = null } = deps;
  const date = createDate(clock);
  const cache = createResponseCache(deps.onCacheLookup);
  const app = new Hono<ServiceEnv>({ getPath: withoutDoubleSlashes });
  app.use((c, next) => {
    c.set('date', date());
    return next();
  });
  for (const path of [...RPC_PATHS, ...DOCS_PATHS]) app.use(path, withCommonHeaders);
  const toolbox = createToolbox(deps);
  const rpc = rpcRoutes({ ...deps, toolbox });
  for (const path of RPC_PATHS) app.route(path, rpc);
  app.options('*', (c) => answerPreflight(c));
  app.route(BASE_PATH, restRoutes(deps, cache));
  app.route('/', docsRoutes({ tools: toolbox.tools, clock }));
  for (const path of DOCS_PATHS) app.all(path, (c) => refuseMethod(c, 'GET, HEAD, OPTIONS'));
  app.notFound((c) => refuseRoute(c));
  app.onError((error, c) => {
    onError(error, c.req.url);
    if (deps.isUnavailable?.(error)) return refuse(c, 503, DATABASE_UNAVAILABLE, RETRY_AFTER_SECONDS);
    return refuse(c, 500, 'An unexpected server error has occurred');
  });
  const addressOf = (peer: Peer) => {
    const forwarded = peer.headers?.['x-forwarded-for'];
    // Joined in the same way as a `Request` joins a header that was sent several times.
    const text = typeof forwarded === 'object' ? forwarded.join(', ') : (forwarded ?? null);
    return trustedProxies === null ? peer.address : forwardedAddress(peer.address, text, trustedProxies);
  };
  const { fromCache, admittedOf } = createFromCache({ cache, access, date, addressOf });
  const handler = async (request: Request, peer?: Peer) => {
    const plain = withoutTrailingQuestionMarks(request);
    if (peer === undefined) return app.fetch(plain, {});
    return app.fetch(plain, { ...peer, address: addressOf(peer), admitted: admittedOf(peer) });
  };
  return Object.assign(handler, { fromCache });
}

/** One of the vendor's own clients requests `/tickers//btc-bitcoin`, so two slashes count as one (decision 22). */
function withoutDoubleSlashes(request: Request): string {
  const path = getPathNoStrict(request);
  return path.includes('//') ? path.replaceAll(/\/{2,}/g, '/') : path;
}

/** Another client of the vendor ends every URL with a question mark, even after a query: `?interval=1h?` (decision 22). */
function withoutTrailingQuestionMarks(request: Request): Request {
  const { url, method } = request;
  if (!url.endsWith('?') || (method !== 'GET' && method !== 'HEAD')) return request;
  // The headers are read only here: building a `Headers` object takes longer than most answers.
  const { headers, signal } = request;
  return new Request(url.replace(/\?+$/, ''), { method, headers, signal });
}

/** Routes every endpoint of the contract, and no other. An endpoint without an answer does not compile. */
export function restRoutes(deps: ServiceDeps, cache: ResponseCache = createResponseCache()): Hono<ServiceEnv> {
  const answers: Readonly<Record<EndpointName, Answer>> = {
    ...historyRoutes(deps),
    ...marketRoutes(deps),
    ...catalogueRoutes(deps),
    ...accountRoutes(deps),
  };
  const routes = new Hono<ServiceEnv>();
  for (const path of UNANSWERED) routes.all(routePath(path), (c) => refuse(c, 404, UNANSWERED_PATH));
  // A request for an unknown path or method costs the caller nothing.
  const admitted = admission(deps.access);
  for (const name of ENDPOINT_NAMES) {
    const endpoint = ENDPOINTS[name];
    const path = routePath(endpoint.path);
    routes.on(['GET', 'POST'], path, admitted, cached(cache, endpoint), answers[name]);
    routes.all(path, (c) => refuseMethod(c));
  }
  return routes;
}

/** Converts `/coins/{coin_id}` to the router's syntax. */
function routePath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The `Date` header shows the time of `clock`, so that a client on a simulated clock can calculate the age of an answer. */
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

/**
 * For responses that are not built in `answer.ts`. The headers are set first, because Hono would copy a finished response to change its headers.
 */
const withCommonHeaders: MiddlewareHandler<ServiceEnv> = (c, next) => {
  c.header('Date', c.get('date'));
  for (const [name, value] of Object.entries(COMMON_HEADERS)) c.header(name, value);
  return next();
};
