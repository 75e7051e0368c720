/** A run that waits only for a second opinion about its last chunk. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import { createScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { World } from '../support/world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.close();
});

test('a run that waits for a second opinion says so, and waits it out however short the allowed wait', async () => {
  const scripted = await createScriptedWorld({ speed: 50 });
  world = scripted.world;
  const chandler = await world.open();
  let refused = 0;
  scripted.upstream.script = (request) =>
    request.url.includes('/ohlcv') && refused++ === 0
      ? says(402, 'Getting historical OHLCV data before 2026-11-10 09:50:50 +0000 UTC is not allowed in this plan')
      : null;
  const waits = new Set<string | undefined>();
  const run = await chandler.backfill({
    coins: ['btc-bitcoin'],
    from: TODAY - 30 * DAY,
    to: TODAY - 3 * DAY,
    maxWaitMs: 2_000,
    onProgress: ({ waiting }) => waits.add(waiting?.reason),
  });
  expect(run.end).toEqual({ kind: 'done' });
  expect(run.refused.size).toBe(0);
  expect(run.totals).toMatchObject({ requests: 2 });
  expect(waits).toContain('second opinion');
});
