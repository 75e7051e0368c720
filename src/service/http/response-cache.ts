/** Caches the bytes of answers by plan and request, and sends them again while the data behind them are current. */
import type { MiddlewareHandler } from 'hono';
import { LRUCache } from 'lru-cache';
import type { Endpoint } from '../../contract/interface/endpoints.ts';
import type { Handler, Peer, Reply } from '../../contract/interface/handler.ts';
import type { Access, Admission } from '../../contract/plan/access.ts';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';
import { allowanceHeaders, callerOf } from './admission.ts';
import { cacheControlFor, replyOf, respondWith } from './answer.ts';
import { type Admitted, type CachedResponse, headerIn, type ServiceEnv } from './request-input.ts';

export type ResponseCache = {
  /** Whether any plan has an entry for this target, current or not. */
  has(target: string): boolean;
  /** Null: there is no entry, its data have changed, or the check failed. */
  find(plan: PlanName, target: string): Promise<CachedResponse | null>;
  store(plan: PlanName, target: string, response: CachedResponse): void;
};

/** Limit for all bodies with their compressed copies. */
const MAX_BYTES = 256 * 1_024 * 1_024;
/** The estimated size of the key, headers and objects of one entry. */
const ENTRY_BYTES = 2_000;

/** `onLookup` is called for each answer that may be cached: was it sent from the cache? */
export function createResponseCache(onLookup: (isHit: boolean) => void = () => undefined): ResponseCache {
  const entries = new LRUCache<string, CachedResponse>({
    maxSize: MAX_BYTES,
    // A compressed copy is never larger than its body, except for the shortest ones.
    sizeCalculation: ({ body }) => 2 * body.length + ENTRY_BYTES,
  });
  return {
    has: (target) => PLAN_NAMES.some((plan) => entries.has(`${plan} ${target}`)),
    async find(plan, target) {
      const key = `${plan} ${target}`;
      const found = entries.get(key);
      if (found === undefined) return null;
      if (await found.isCurrent().catch(() => false)) {
        onLookup(true);
        return found;
      }
      if (entries.peek(key) === found) entries.delete(key);
      return null;
    },
    store(plan, target, response) {
      onLookup(false);
      entries.set(`${plan} ${target}`, response);
    },
  };
}

const MAX_TARGET_LENGTH = 200;

/**
 * Path and query of a URL with only the parameters in `known`, each once, because a parameter without meaning must not create another entry. Null
 * (not cached): the target is too long, or its spelling could mean another target. A target in plain spelling does not change.
 */
export function canonicalTarget(url: string, known: ReadonlySet<string>): string | null {
  const begin = url.indexOf('/', url.indexOf('//') + 2);
  const queryAt = url.indexOf('?', begin);
  const path = url.slice(begin, queryAt === -1 ? undefined : queryAt).replaceAll(/\/{2,}/g, '/');
  if (path.includes('%')) return null;
  const given = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryAt === -1 ? '' : url.slice(queryAt))) {
    if (known.has(name) && !given.has(name)) given.set(name, value);
  }
  const query = [...given].map(([name, value]) => `${name}=${value.replaceAll(/[%&+#]/g, encodeURIComponent)}`);
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`;
  return target.length <= MAX_TARGET_LENGTH ? target : null;
}

type FromCache = {
  readonly fromCache: NonNullable<Handler['fromCache']>;
  /** The admission that `fromCache` requested for this peer before it found no reply. */
  admittedOf(peer: Peer): Admitted | undefined;
};

/**
 * Looks up a plain GET by its target as it was sent, without a `Request` and without the routes: those cost more than everything else that a short
 * answer needs. The caller is admitted and counted first, as for any request.
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
      // Nothing was counted. The routes request admission again, and answer with the error.
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

/** Uses the same cache for requests that go through the routes, and lets the endpoint's answer be stored. POST is never cached. */
export function cached(cache: ResponseCache, { parameters, isStrict }: Endpoint): MiddlewareHandler<ServiceEnv> {
  const known = new Set(parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name));
  return async (c, next) => {
    // A target with a parameter that must be refused would also find the entry of a strict endpoint.
    const isKept = c.req.method !== 'POST' && isStrict !== true;
    const target = isKept ? canonicalTarget(c.req.url, known) : null;
    if (target === null) return next();
    const plan = c.get('plan');
    const found = await cache.find(plan, target);
    if (found !== null) return respondWith(c, found);
    c.set('store', (response) => cache.store(plan, target, response));
    return next();
  };
}
