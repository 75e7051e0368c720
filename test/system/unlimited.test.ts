/** An account without any limit: exactly the sent requests are counted, and a pause or an outage stops all workers at once. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { CONCURRENCY, counted, make, SLOTS, upstream, WORK, world } from './unlimited.ts';

afterEach(() => world?.close());

test('a coin that the upstream does not know is requested once, however many chunks are planned for it', async () => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  upstream.script = (request) =>
    request.url.includes('eth-ethereum/ohlcv') ? Response.json({ error: 'id not found' }, { status: 404 }) : null;
  const chunks = 30;
  const from = WORK.to - chunks * SLOTS * DAY;
  const run = await chandler.backfill({ ...WORK, from, concurrency: 1 });
  expect(run.end).toEqual({ kind: 'done' });
  expect(upstream.ohlcv().filter(({ path }) => path.includes('eth-ethereum'))).toHaveLength(1);
  expect(upstream.ohlcv()).toHaveLength(2 * chunks + 1);
  expect(await counted()).toBe(upstream.log.length);
});

test.each([1, 5, 40])('an interrupted run has sent every counted request (after %i requests)', async (requests) => {
  await make();
  const chandler = await world.open({ candlesPerRequest: SLOTS });
  const stop = new AbortController();
  upstream.script = () => {
    if (upstream.ohlcv().length >= requests) stop.abort();
    return null;
  };
  const run = await chandler.backfill({ ...WORK, concurrency: CONCURRENCY, signal: stop.signal });
  expect(run.end).toEqual({ kind: 'interrupted' });
  expect(upstream.ohlcv().length).toBeLessThan(requests + CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});

test('the next take obeys a pause that the upstream asked of another process', async () => {
  await make();
  const [chandler, other] = [
    await world.open({ candlesPerRequest: SLOTS }),
    await world.open({ candlesPerRequest: SLOTS }),
  ];
  let toldAt = Number.POSITIVE_INFINITY;
  upstream.script = async (_, simulated, clock) => {
    if (upstream.ohlcv().length === 40) {
      const sentAt = clock.now();
      await other.session.quota.limited({ sentAt, retryAfterMs: 600_000, message: 'slowly' });
      toldAt = clock.now();
    }
    return simulated(_);
  };
  const run = await chandler.backfill({ ...WORK, concurrency: CONCURRENCY, maxWaitMs: 0 });
  expect(run.end).toMatchObject({ kind: 'stopped' });
  const late = upstream.ohlcv().filter(({ at }) => at > toldAt);
  // The others may have been granted a permit before, and not have sent their request.
  expect(late.length).toBeLessThan(CONCURRENCY);
  expect(await counted()).toBe(upstream.log.length);
});
