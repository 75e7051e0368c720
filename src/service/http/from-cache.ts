/** Answers out of the response cache: before the routes for a plain GET on a port, and behind admission for everything else. */
import type { MiddlewareHandler } from 'hono';
import type { Endpoint } from '../../contract/interface/endpoints.ts';
import type { Handler, Peer, Reply } from '../../contract/interface/handler.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';
import { allowanceHeaders, callerOf } from './admission.ts';
import { cacheControlFor, replyOf, respondWith } from './answer.ts';
import { headerIn } from './request-input.ts';
import { canonicalTarget, type ResponseCache } from './response-cache.ts';
import type { Admitted, ServiceEnv } from './service-env.ts';

export type FromCache = {
  readonly fromCache: NonNullable<Handler['fromCache']>;
  /** What `fromCache` learned about this peer before it found that it has no reply. */
  admittedOf(peer: Peer): Admitted | undefined;
};

/**
 * Looks a plain GET up by its target as it was sent, without a `Request` and without the routes: those cost more than everything else
 * a short answer needs. The caller is admitted and counted first, as for any request.
 */
export function createFromCache({
  cache,
  access,
  date,
  addressOf,
}: {
  readonly cache: ResponseCache;
  readonly access: Access;
  /** The value of the `Date` header. */
  readonly date: () => string;
  readonly addressOf: (peer: Peer) => string;
}): FromCache {
  const admitted = new WeakMap<Peer, Admitted>();
  const find = async (target: string, peer: Peer): Promise<Reply | null> => {
    const caller = callerOf(headerIn(peer.headers, 'authorization'), addressOf(peer));
    let admission: Admission;
    try {
      admission = await access.admit(caller, 'data');
    } catch {
      // Nothing was counted; the routes ask again, and answer with the reason.
      return null;
    }
    const found = admission.kind === 'admitted' ? await cache.find(admission.plan, target) : null;
    if (found === null) {
      admitted.set(peer, { caller, admission });
      return null;
    }
    return replyOf(found, {
      date: date(),
      cacheControl: cacheControlFor(caller),
      allowance: allowanceHeaders(admission.allowance),
      ifNoneMatch: headerIn(peer.headers, 'if-none-match'),
    });
  };
  return {
    fromCache: (peer) => (peer.target !== undefined && cache.has(peer.target) ? find(peer.target, peer) : null),
    admittedOf: (peer) => admitted.get(peer),
  };
}

/** The same cache for requests that went through the routes; what the endpoint then answers may be stored. POST is never cached. */
export function cached(cache: ResponseCache, { parameters }: Endpoint): MiddlewareHandler<ServiceEnv> {
  const known = new Set(parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name));
  return async (c, next) => {
    const target = c.req.method === 'POST' ? null : canonicalTarget(c.req.url, known);
    if (target === null) return next();
    const plan = c.get('plan');
    const found = await cache.find(plan, target);
    if (found !== null) return respondWith(c, found);
    c.set('store', (response) => cache.store(plan, target, response));
    return next();
  };
}
