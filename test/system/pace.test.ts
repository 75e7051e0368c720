import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { says } from '../support/scripted.ts';
import { arrivals, COINS, make, mostWithin, testRetryAfter, upstream, WORK, world } from './pace.ts';

afterEach(() => world?.close());

describe('429', () => {
  testRetryAfter('in seconds');

  test('without Retry-After makes all workers wait longer each time, and ends the run after --max-wait', async () => {
    // Not faster: the time in which this machine handles an answer would be minutes, after which a 429 counts as a first one again.
    await make({ speed: 20, random: () => 0 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(429, 'slow down') : null);
    const run = await chandler.backfill({ ...WORK, concurrency: 4, maxWaitMs: 30_000 });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'limited' });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(12);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + 10 * 60_000);
    expect((await chandler.backfill({ ...WORK, concurrency: 4 })).end).toEqual({ kind: 'done' });
  });
});

describe('a rate of 10 requests per second', () => {
  const perSecond = 10;
  /** A request gets its time on arrival. The test measures how long this process was blocked between gate and arrival, and allows nothing else. */
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const second = () => 1_000 - Math.ceil(loop.max / 1e6);
  beforeEach(() => void loop.enable());
  afterEach(() => void loop.disable());

  test('is kept by one process in every second', async () => {
    await make({ limits: { perSecond } });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.forget();
    loop.reset();
    await chandler.backfill({ ...WORK, from: WORK.to - 440 * DAY, coins: COINS.slice(0, 1), concurrency: 8 });
    expect(upstream.ohlcv()).toHaveLength(22);
    expect(mostWithin(second(), arrivals())).toBeLessThanOrEqual(perSecond);
  });

  test('is kept by two processes that fill the same coin together, and each chunk is requested once', async () => {
    await make({ limits: { perSecond }, lateMs: 100 });
    const chandlers = [await world.open({ candlesPerRequest: 20 }), await world.open({ candlesPerRequest: 20 })];
    upstream.forget();
    loop.reset();
    const startedAt = world.clock.now();
    await Promise.all(
      chandlers.map((chandler) => chandler.backfill({ ...WORK, coins: COINS.slice(0, 1), concurrency: 4 })),
    );
    const sent = arrivals().sort((a, b) => a - b);
    expect(sent).toHaveLength(30);
    // None before its permit. One request of one process may be late, beside a punctual one of the other (`quota/gate.ts`).
    const early = sent.filter((at, i) => at < startedAt + (i * 1_000) / perSecond);
    expect(early).toEqual([]);
    expect(mostWithin(second(), sent)).toBeLessThanOrEqual(perSecond + 1);
  });
});
