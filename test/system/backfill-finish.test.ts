/** When backfills are done, as it is told while they run: after a pause, and while others share the pace. */
import { afterEach, expect, test } from 'vitest';
import { changeBackfill } from '../../src/store/work/backfill-queue.ts';
import { begin, checkAccurate, checkSteady, record, watch, world } from './backfill-finish.ts';

afterEach(() => world?.close());

test('after a pause it says that it was resumed, and the others that it takes no turns meanwhile', {
  timeout: 240_000,
}, async () => {
  const coinIds = await begin(['a', 'b']);
  const [one, other] = [await record(coinIds.slice(0, 3), 100), await record(coinIds.slice(3, 6), 100)];
  const change = (what: 'pause' | 'resume') => changeBackfill(world.database.sql, other, what, world.clock.now());
  const told = await watch({ 8: () => change('pause'), 14: () => change('resume') });
  const paused = told[12]!.rows.get(other)!;
  expect(paused).toMatchObject({ state: 'paused', finishAt: null, finishFrom: null, finishTo: null });
  expect(paused.progress).toBeGreaterThan(0.1);
  // A busy machine answers more slowly for a while, and that is a cause that is told, too.
  const isOfMachine = (cause: string) => /^it got (fewer|more) requests/.test(cause);
  expect(checkSteady(told, one).filter((cause) => !isOfMachine(cause))).toEqual([
    `backfill ${other} no longer goes before it`,
    `backfill ${other} goes before it or takes turns with it`,
  ]);
  expect(checkSteady(told, other)).toContain('it was resumed');
  // That the other one is resumed, in their last half, nobody can foresee.
  for (const id of [one, other]) checkAccurate(told, id, 0.2);
});
