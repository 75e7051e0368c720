import { afterEach, describe, expect, test } from 'vitest';
import { exitOf } from '../../src/cli/backfill/exit-of.ts';
import { BY_DEFAULT, broken, COINS, chunksOf, testOthersDecide } from './broken-coin.ts';
import { HEALTHY, make, missing, POISONED, upstream, WORK, world } from './poisoned.ts';

afterEach(() => world?.close());

describe('a backfill of two coins, one of which always fails, ends with that one failed and the other complete', () => {
  test('when many workers request both, in many chunks', async () => {
    await make({ speed: 25 });
    const chandler = await world.open({ candlesPerRequest: 20 });
    upstream.script = broken;
    const run = await chandler.backfill({ ...WORK, ...BY_DEFAULT, coins: COINS });
    expect(run.end).toEqual({ kind: 'done' });
    expect(exitOf([run])).toBe(1);
    expect(new Set(run.failed.map(({ coinId }) => coinId))).toEqual(new Set([POISONED]));
    expect(await missing()).toEqual([`${POISONED} not asked yet`]);
    // Each of four workers may have one request in flight when the eighth fails.
    expect(chunksOf(POISONED).length).toBeLessThanOrEqual(8 + 2 * 4);
    expect(chunksOf(HEALTHY[0]!)).toHaveLength(30);
  });

  testOthersDecide('no JSON');
});
