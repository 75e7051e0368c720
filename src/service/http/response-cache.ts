/** Keeps the bytes of answers by plan and request, to be sent again for as long as the data they were made of are current. */
import { LRUCache } from 'lru-cache';
import type { IsCurrent } from '../../contract/answer/revalidation.ts';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';

/** An answer, without what depends on the caller and on the moment. */
export type CachedResponse = {
  /** Names and values in turn, for replies with and without a body. */
  readonly headers: readonly string[];
  readonly contentType: string;
  readonly etag: string;
  /** A string holds ASCII characters only. */
  readonly body: string | Uint8Array;
  /** Compressed when the first client accepts it, and once. */
  readonly gzip: () => Promise<Uint8Array>;
  readonly isCurrent: IsCurrent;
};

export type ResponseCache = {
  /** Whether any plan has an entry for this target, current or not. */
  has(target: string): boolean;
  /** Null: there is no entry, or its data have changed, or nobody can tell now whether they have. */
  find(plan: PlanName, target: string): Promise<CachedResponse | null>;
  store(plan: PlanName, target: string, response: CachedResponse): void;
};

/** Of all bodies with their compressed copies. */
const MAX_BYTES = 256 * 1_024 * 1_024;
/** Key, headers and objects of one entry. */
const ENTRY_BYTES = 2_000;

/** `onLookup` is told of each answer that may be cached: was it sent from the cache? */
export function createResponseCache(onLookup: (isHit: boolean) => void = () => undefined): ResponseCache {
  const entries = new LRUCache<string, CachedResponse>({
    maxSize: MAX_BYTES,
    // A compressed copy is never larger than its body, but for the shortest ones.
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
 * Path and query of a URL with the parameters in `known` alone, each once: so that a parameter without meaning makes no further entry.
 * Null: too long, or spelt in a way that could stand for another target, so it is not cached. A target that a client spells plainly
 * stays as it is.
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
