import { afterEach, describe, expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { BY_DEFAULT, broken, COINS, chunksOf, testOthersDecide } from './broken-coin.ts';
import { HEALTHY, make, others, POISONED, upstream, WORK, world } from './poisoned.ts';

afterEach(() => world?.close());

describe('a backfill of two coins, one of which is broken, ends: that one failed, the other is complete', () => {
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

  testOthersDecide('status 500', 'no candles');
});
