/** A cache between Chandler and the upstream, like the one before the free host: it repeats answers and sends their age. */
import type { Clock } from '../../src/clock.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';

/** A minute, and ten more while the upstream fails. This cache always uses the full time. */
export const LONGEST_CACHED_MS = 660_000;

type Kept = { readonly at: number; readonly body: string; readonly headers: readonly (readonly [string, string])[] };

/** Caches whole answers about candles, whatever they contain, for the longest time. */
export function behindCache(upstream: FetchFunction, clock: Clock): FetchFunction {
  const kept = new Map<string, Kept>();
  return async (request) => {
    const found = kept.get(request.url);
    if (found !== undefined && clock.now() - found.at < LONGEST_CACHED_MS) {
      const headers = new Headers(found.headers.map(([name, value]): [string, string] => [name, value]));
      const age = Number(headers.get('age') ?? 0) + Math.floor((clock.now() - found.at) / 1000);
      headers.set('age', String(age));
      return new Response(found.body, { headers });
    }
    const answer = await upstream(request);
    if (answer.status !== 200 || !new URL(request.url).pathname.includes('/ohlcv')) return answer;
    const body = await answer.text();
    const headers = [...answer.headers].filter(([name]) => name !== 'content-length');
    if (isWhole(body)) kept.set(request.url, { at: clock.now(), body, headers });
    return new Response(body, { headers });
  };
}

/** No cache keeps an answer that was cut off. */
function isWhole(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}
