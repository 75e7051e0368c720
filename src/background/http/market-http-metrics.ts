/** Figures of what is served: requests by route and status, how long they took, and how much could be answered without reading it again. */
import { Counter, Histogram, Registry } from 'prom-client';
import { stopwatch } from '../../clock.ts';
import { ENDPOINTS } from '../../contract/interface/endpoints.ts';
import type { Handler, Peer } from '../../contract/interface/handler.ts';
import { RPC_PATH } from '../../contract/interface/json-rpc.ts';
import { BASE_PATH } from '../../contract/interface/paths.ts';

export type ServingMetrics = {
  readonly registry: Registry;
  answered(path: string, status: number, ms: number): void;
  /** Something was asked for that may be kept: was it? */
  readonly kept: (view: string, isHit: boolean) => void;
};

export function createServingMetrics(): ServingMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'chandler_served_requests_total',
    help: 'Requests that were answered, by route and status.',
    labelNames: ['route', 'status'] as const,
    registers,
  });
  const seconds = new Histogram({
    name: 'chandler_served_seconds',
    help: 'How long it took until the answer was at hand.',
    labelNames: ['route'] as const,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  const kept = new Counter({
    name: 'chandler_served_kept_total',
    help: 'What was asked for that may be kept: was it there, and still true?',
    labelNames: ['view', 'result'] as const,
    registers,
  });
  return {
    registry,
    answered: (path, status, ms) => {
      const route = routeOf(path);
      requests.inc({ route, status });
      seconds.observe({ route }, ms / 1000);
    },
    kept: (view, isHit) => kept.inc({ view, result: isHit ? 'hit' : 'miss' }),
  };
}

/** The handler, counted. */
export function withFigures(handler: Handler, metrics: ServingMetrics): Handler {
  const counted = async (request: Request, peer?: Peer): Promise<Response> => {
    const begun = stopwatch();
    const path = pathOf(request.url);
    try {
      const answer = await handler(request, peer);
      metrics.answered(path, answer.status, stopwatch() - begun);
      return answer;
    } catch (error) {
      metrics.answered(path, 500, stopwatch() - begun);
      throw error;
    }
  };
  const timed = async (peer: Peer, given: Promise<Response | null>): Promise<Response | null> => {
    const begun = stopwatch();
    const path = withoutQuery(peer.target!);
    try {
      const answer = await given;
      // Else it is asked for anew, and counted then.
      if (answer !== null) metrics.answered(path, answer.status, stopwatch() - begun);
      return answer;
    } catch (error) {
      metrics.answered(path, 500, stopwatch() - begun);
      throw error;
    }
  };
  const again = (peer: Peer) => {
    const given = handler.again?.(peer) ?? null;
    return given === null ? null : timed(peer, given);
  };
  return Object.assign(counted, { again });
}

function pathOf(url: string): string {
  return withoutQuery(url.slice(url.indexOf('/', url.indexOf('//') + 2)));
}

function withoutQuery(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/** With every parameter as `{}`. */
const ROUTES = new Set(Object.values(ENDPOINTS).map(({ path }) => path.replaceAll(/\{\w+\}/g, '{}')));
const MOST_SEGMENTS = 5;

/** Few whatever is asked: ids are not told apart, and what is no route is one. */
export function routeOf(path: string): string {
  if (path === RPC_PATH) return RPC_PATH;
  if (!path.startsWith(`${BASE_PATH}/`)) return 'other';
  const segments = path
    .slice(BASE_PATH.length + 1)
    .split('/')
    .filter((segment) => segment !== '');
  if (segments.length > MOST_SEGMENTS) return 'other';
  const plain = `/${segments.join('/')}`;
  if (ROUTES.has(plain)) return BASE_PATH + plain;
  for (const named of [1, 2]) {
    for (let i = 1; i <= named && i < segments.length; i++) segments[i] = '{}';
    const route = `/${segments.join('/')}`;
    if (ROUTES.has(route)) return BASE_PATH + route;
  }
  return 'other';
}
