/** A cache keeps an unusable answer. The chunk's attempts must last until the cache has forgotten it. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { LONGEST_CACHED_MS } from '../support/cache.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';

const DAYS = { coins: ['btc-bitcoin'], from: TODAY - 40 * DAY, to: TODAY - 3 * DAY } as const;

let made: ScriptedWorld;
afterEach(() => made.world.close());

test.each([
  ['no JSON', '<html>Maintenance'],
  ['rows of another shape', JSON.stringify([{ surprise: 1 }, { surprise: 2 }])],
])('a cached answer with %s is requested again until the cache has forgotten it', async (_, body) => {
  made = await createScriptedWorld({ speed: 600 });
  const { world, upstream } = made;
  const chandler = await world.open();
  let keptAt: number | null = null;
  upstream.script = async (request, simulated) => {
    if (!request.url.includes('/ohlcv')) return simulated(request);
    const now = world.clock.now();
    keptAt ??= now;
    const age = Math.floor((now - keptAt) / 1_000);
    if (now - keptAt >= LONGEST_CACHED_MS) return simulated(request);
    return new Response(body, { headers: { 'content-type': 'application/json', age: `${age}` } });
  };
  upstream.forget();
  expect(await chandler.backfill(DAYS)).toMatchObject({ end: { kind: 'done' }, failed: [] });
  // The first answer, one from the cache, and the true one.
  expect(upstream.ohlcv().length).toBeLessThanOrEqual(4);
  expect(await world.database.sql`select from market.gaps`).toHaveLength(0);
});
