import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { says } from '../support/scripted.ts';
import { arrivals, COINS, make, mostWithin, upstream, WORK, world } from './pace.ts';

afterEach(() => world?.close());

describe('429', () => {
  test.each([
    ['in seconds', (at: number) => String(Math.ceil((at - world.clock.now()) / 1000))],
    ['as a date', (at: number) => new Date(Math.ceil(at / 1000) * 1000).toUTCString()],
  ])(
    'with Retry-After %s is obeyed by all workers of all processes: nobody asks inside the pause',
    async (_, header) => {
      await make({ speed: 4 });
      const chandlers = [await world.open({ candlesPerRequest: 20 }), await world.open({ candlesPerRequest: 20 })];
      const pauses: { from: number; to: number }[] = [];
      let n = 0;
      upstream.forget();
      upstream.script = (request) => {
        if (!request.url.includes('ohlcv') || ++n % 25 !== 0 || pauses.length === 2) return null;
        const to = world.clock.now() + 10_000;
        pauses.push({ from: world.clock.now(), to });
        return says(429, 'slow down', { 'Retry-After': header(to) });
      };
      const [one, two] = await Promise.all(
        chandlers.map((chandler, i) =>
          chandler.backfill({ ...WORK, concurrency: 4, coins: i === 0 ? COINS : [...COINS].reverse() }),
        ),
      );
      expect([one!.end, two!.end]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
      expect(pauses).toHaveLength(2);
      // The other process hears of it from the ledger: what its workers had taken until then is on its way.
      const HEARD_OF_MS = 1_500;
      for (const { from, to } of pauses) {
        const inside = upstream.ohlcv().filter((asked) => asked.at > from && asked.at < to - 1_000);
        expect(inside.filter((asked) => asked.at > from + HEARD_OF_MS)).toEqual([]);
      }
      expect(upstream.ohlcv().filter((asked) => asked.status === 429)).toHaveLength(2);
    },
  );

  test('without Retry-After makes everybody wait longer each time, and ends the run beyond its patience', async () => {
    // Not faster: what this machine takes to hear of an answer would be minutes, after which a 429 counts as another first one.
    await make({ speed: 20, random: () => 0 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = (request) => (request.url.includes('ohlcv') ? says(429, 'slow down') : null);
    const run = await chandler.backfill({ ...WORK, concurrency: 4, maxWaitMs: 60_000 });
    expect(run.end).toMatchObject({ kind: 'stopped', reason: 'limited' });
    expect(upstream.ohlcv().length).toBeLessThanOrEqual(12);
    upstream.script = null;
    world.clock.advanceTo(world.clock.now() + 10 * 60_000);
    expect((await chandler.backfill({ ...WORK, concurrency: 4 })).end).toEqual({ kind: 'done' });
  });
});

describe('a pace of 10 requests per second', () => {
  const perSecond = 10;
  /** A request is stamped when it arrives: what held up this process between the gate and there is measured, and nothing else allowed. */
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const second = () => 1_000 - Math.ceil(loop.max / 1e6);
  beforeEach(() => void loop.enable());
  afterEach(() => void loop.disable());

  test('is kept by one process in every second', async () => {
    await make({ limits: { perSecond } });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.forget();
    loop.reset();
    await chandler.backfill({ ...WORK, coins: COINS.slice(0, 1), concurrency: 8 });
    expect(upstream.ohlcv()).toHaveLength(30);
    expect(mostWithin(second(), arrivals())).toBeLessThanOrEqual(perSecond);
  });

  test('is kept by two processes that fill the same coin together, each chunk asked once', async () => {
    await make({ limits: { perSecond }, lateMs: 100 });
    const chandlers = [await world.open({ candlesPerRequest: 10 }), await world.open({ candlesPerRequest: 10 })];
    upstream.forget();
    loop.reset();
    const startedAt = world.clock.now();
    await Promise.all(
      chandlers.map((chandler) => chandler.backfill({ ...WORK, coins: COINS.slice(0, 1), concurrency: 4 })),
    );
    const sent = arrivals().sort((a, b) => a - b);
    expect(sent).toHaveLength(60);
    // None before its turn. After its turn one of one process may be late, beside one in time of the other (`quota/gate.ts`).
    const early = sent.filter((at, i) => at < startedAt + (i * 1_000) / perSecond);
    expect(early).toEqual([]);
    expect(mostWithin(second(), sent)).toBeLessThanOrEqual(perSecond + 1);
  });
});
