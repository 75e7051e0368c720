/** An account without any limit: an outage, and faults of all kinds. */
import { afterEach, expect, test } from 'vitest';
import { parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { fill } from '../support/fill.ts';
import { says } from '../support/scripted.ts';
import { CONCURRENCY, counted, MOST_LATE, make, SLOTS, upstream, WORK, world } from './unlimited.ts';

afterEach(() => world?.close());

test('an outage costs no more requests than one for each worker and a few that probe', async () => {
  // So many coins that no single series is to blame.
  await make({ simulator: { seed: 3, coins: 24, unlimited: true } });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  upstream.script = (request) =>
    request.url.includes('/ohlcv') && upstream.ohlcv().length > 200 ? says(500, 'down') : null;
  const coins = (await world.database.sql<{ id: string }[]>`select id from market.coin`).map(({ id }) => id);
  const run = await chandler.backfill({ ...WORK, coins, concurrency: CONCURRENCY, maxWaitMs: 3_000 });
  expect(run.end.kind).toBe('stopped');
  const failed = upstream.ohlcv().filter(({ status }) => status === 500);
  expect(failed.length).toBeGreaterThan(0);
  expect(failed.length).toBeLessThanOrEqual(2 * CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});

test('hardly a request is counted that was not sent, whatever the upstream answers', async () => {
  const faults = parseFaultSpec('429:0.02,500:0.02,reset:0.02,truncated:0.02,seed=5');
  if (!faults.ok) throw new Error(faults.problem);
  await make({ speed: 4, faults: () => faults.spec });
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  await fill(world, chandler, { ...WORK, concurrency: CONCURRENCY });
  const { faults: injected } = world.simulator.counters();
  expect(injected['429']).toBeGreaterThan(0);
  expect(injected['500']).toBeGreaterThan(0);
  // At this speed a permit is late after a fraction of a second. Then it is lost, and stays counted.
  const lost = (await counted()) - upstream.log.length;
  expect(lost).toBeGreaterThanOrEqual(0);
  expect(lost).toBeLessThanOrEqual(MOST_LATE);
});
