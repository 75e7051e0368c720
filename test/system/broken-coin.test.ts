/** A coin that the upstream always fails on, when nothing else is left to be answered: is it the coin, or an outage? */
import { afterEach, describe, expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { says } from '../support/scripted.ts';
import { HEALTHY, MINUTE, make, missing, others, POISONED, upstream, WORK, world } from './poisoned.ts';

afterEach(() => world?.close());

const COINS = [POISONED, HEALTHY[0]!];
/** As `chandler backfill` waits by itself. The clock runs no faster than a busy machine can follow within that time. */
const BY_DEFAULT = { maxWaitMs: 5 * MINUTE };
const isOf = (request: Request, coin: string) => request.url.includes(`${coin}/ohlcv`);
const chunksOf = (coin: string) =>
  upstream.ohlcv().filter((asked) => asked.coin === coin && asked.path.endsWith('/ohlcv/historical'));

describe('a backfill of two coins, one of which is broken, ends: that one failed, the other is complete', () => {
  const broken = (request: Request) => (isOf(request, POISONED) ? says(500, 'An unexpected server error') : null);

  test('when both are asked about by many workers, in many chunks', async () => {
    await make({ speed: 25 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = broken;
    const run = await chandler.backfill({ ...WORK, ...BY_DEFAULT, coins: COINS });
    expect(run.end).toEqual({ kind: 'done' });
    expect(exitOf([run])).toBe(1);
    expect(new Set(run.failed.map(({ coinId }) => coinId))).toEqual(new Set([POISONED]));
    expect(await missing()).toEqual([`${POISONED} not asked yet`]);
    // Four workers may each have one request on its way when the eighth fails.
    expect(chunksOf(POISONED).length).toBeLessThanOrEqual(8 + 2 * 4);
    expect(chunksOf(HEALTHY[0]!)).toHaveLength(30);
  });

  test('when the other was complete before, and many workers ask about the broken one alone', async () => {
    await make({ speed: 25 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    await chandler.backfill({ ...WORK, coins: HEALTHY });
    upstream.script = broken;
    upstream.forget();
    const run = await chandler.backfill({ ...WORK, ...BY_DEFAULT, coins: COINS });
    expect([run.end.kind, exitOf([run])]).toEqual(['done', 1]);
    expect(run.failed).toHaveLength(30);
    expect(chunksOf(POISONED).length).toBeLessThanOrEqual(8 + 2 * 4);
    expect(others()).toHaveLength(2);
  });

  test.each([
    ['500', () => says(500, 'An unexpected server error')],
    ['no JSON', () => new Response('oops', { headers: { 'content-type': 'application/json' } })],
    ['no candles', () => Response.json({ candles: [] })],
  ])(
    'when nothing else is asked, and the answer is always %s: two requests about other coins decide it',
    async (_, answer) => {
      await make({ speed: 25 });
      const chandler = await world.open();
      const work = { ...WORK, ...BY_DEFAULT, concurrency: 1 };
      await chandler.backfill({ ...work, coins: HEALTHY });
      upstream.script = (request) => (isOf(request, POISONED) ? answer() : null);
      upstream.forget();
      const spent = async () => (await chandler.session.quota.state()).day.spent;
      const before = await spent();
      const run = await chandler.backfill({ ...work, coins: COINS });
      expect([run.end.kind, exitOf([run])]).toEqual(['done', 1]);
      expect(chunksOf(POISONED)).toHaveLength(8);
      expect(others()).toHaveLength(2);
      expect(others()).not.toContain(POISONED);
      // They are counted and recorded like any other. A permit that came too late on a busy machine is counted as well.
      expect(run.totals!.requests).toBe(10);
      expect((await spent()) - before).toBeGreaterThanOrEqual(upstream.log.length);
      const recorded = await world.database.sql<{ subject: string; outcome: string }[]>`
      select subject, outcome from ops.fetch where endpoint = 'ohlcv' and series_id is null order by id`;
      expect(recorded).toEqual(others().map((subject) => ({ subject, outcome: 'stored' })));
    },
  );
});

test('in an outage no coin is given up, and no attempt of a chunk is used up: the run goes on when the outage ends', async () => {
  await make({ speed: 200 });
  const chandler = await world.open();
  const work = { ...WORK, concurrency: 1 };
  await chandler.backfill({ ...work, coins: HEALTHY });
  // Until then nothing is answered. A chunk has eight attempts.
  const LONG = 8;
  upstream.script = () => (others().length > LONG ? null : says(503, 'down'));
  upstream.forget();
  const run = await chandler.backfill({ ...work, coins: COINS });
  expect(run.end).toEqual({ kind: 'done' });
  expect(run.failed).toEqual([]);
  expect(await missing()).toEqual([]);
  expect(others()).toHaveLength(LONG + 1);
  expect(
    chunksOf(POISONED)
      .map(({ status }) => status)
      .filter((status) => status === 503),
  ).toHaveLength(6);
});
