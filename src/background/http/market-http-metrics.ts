/** Metrics of the market's HTTP interface: requests by route and status, how long they took, and hits of the cache. */
import { Counter, Histogram, Registry } from 'prom-client';
import { stopwatch } from '../../clock.ts';
import { ENDPOINTS } from '../../contract/interface/endpoints.ts';
import type { Handler, Peer } from '../../contract/interface/handler.ts';
import { RPC_PATHS } from '../../contract/interface/json-rpc.ts';
import { BASE_PATH } from '../../contract/interface/paths.ts';

export type ServingMetrics = ReturnType<typeof createServingMetrics>;

export function createServingMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'chandler_served_requests_total',
    help: 'Requests answered, by route and status.',
    labelNames: ['route', 'status'] as const,
    registers,
  });
  const seconds = new Histogram({
    name: 'chandler_served_seconds',
    help: 'Seconds until the response was ready to be sent.',
    labelNames: ['route'] as const,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  const lookups = new Counter({
    name: 'chandler_served_cache_total',
    help: 'Cache lookups, of whole responses and of what a view has read; a hit is an entry that is current.',
    labelNames: ['cache', 'result'] as const,
    registers,
  });
  return {
    registry,
    answered: (path: string, status: number, ms: number) => {
      const route = routeOf(path);
      requests.inc({ route, status });
      seconds.observe({ route }, ms / 1000);
    },
    /** Counts a look-up in a cache, that of responses or that of a view, as a hit if the cache had a current entry. */
    cacheLookup: (cache: string, isHit: boolean) => lookups.inc({ cache, result: isHit ? 'hit' : 'miss' }),
  };
}

/** The same handler, which also counts and times every response. */
export function withMetrics(handler: Handler, metrics: ServingMetrics): Handler {
  /** Null means no response: the handler then gets the request, and its response is counted. */
  const count = async <R extends { readonly status: number } | null>(path: string, given: Promise<R>): Promise<R> => {
    const begun = stopwatch();
    const response = await given.catch((error: unknown) => {
      metrics.answered(path, 500, stopwatch() - begun);
      throw error;
    });
    if (response !== null) metrics.answered(path, response.status, stopwatch() - begun);
    return response;
  };
  const fromCache = (peer: Peer) => {
    const cached = handler.fromCache?.(peer) ?? null;
    return cached === null ? null : count(pathOf(peer.target!), cached);
  };
  return Object.assign((request: Request, peer?: Peer) => count(pathOf(request.url), handler(request, peer)), {
    fromCache,
  });
}

/** The path of a URL, or of a path with a query, without the query, which may contain secrets. */
export function pathOf(url: string): string {
  const scheme = url.indexOf('://');
  const target = scheme === -1 ? url : url.slice(url.indexOf('/', scheme + 3));
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/** The documented paths, with every parameter as `{}`; those without parameters first. */
const ROUTES = [
  ...RPC_PATHS,
  ...Object.values(ENDPOINTS).map(({ path }) => BASE_PATH + path.replaceAll(/\{\w+\}/g, '{}')),
]
  .sort((a, b) => a.split('{}').length - b.split('{}').length)
  .map((label) => ({ label, pattern: new RegExp(`^${label.replaceAll('{}', '[^/]+')}/*$`) }));

/** One of a few labels: all ids share one, and every unknown path is `other`. */
export function routeOf(path: string): string {
  return ROUTES.find(({ pattern }) => pattern.test(path))?.label ?? 'other';
}
