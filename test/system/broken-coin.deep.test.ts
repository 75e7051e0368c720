import { afterEach, describe, expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { says } from '../support/scripted.ts';
import { BY_DEFAULT, broken, COINS, chunksOf, testOthersDecide } from './broken-coin.ts';
import { HEALTHY, make, missing, others, POISONED, upstream, WORK, world } from './poisoned.ts';

afterEach(() => world?.close());

describe('a backfill of two coins, one of which always fails, ends with that one failed and the other complete', () => {
  test('when the other was complete before, and many workers request only the broken one', async () => {
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

  testOthersDecide('status 500', 'no candles');
});

test('an outage makes no coin fail and uses no attempt of a chunk: the run goes on when the outage ends', async () => {
  await make({ speed: 200 });
  const chandler = await world.open();
  const work = { ...WORK, concurrency: 1 };
  await chandler.backfill({ ...work, coins: HEALTHY });
  // Until then no request is answered. A chunk has eight attempts.
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
