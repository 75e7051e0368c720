/** The forecast end of backfills while two services run three of them, one request in nine fails, and all share the rate. */
import { afterEach, expect, test } from 'vitest';
import { changeBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { begin, checkAccurate, checkSteady, record, watch, world } from './backfill-finish.ts';

afterEach(() => world?.close());

test('the forecast end is right to a tenth in the last half of a backfill, and a change of it comes with a reason', {
  timeout: 240_000,
}, async () => {
  const coinIds = await begin(['a', 'b']);
  const [big, small] = [await record(coinIds.slice(0, 4), 100), await record(coinIds.slice(4, 6), 100)];
  // No service is free for it before one of the others is done.
  const next = await record(coinIds.slice(6, 8), 100);
  const told = await watch();
  for (const id of [big, small, next]) {
    checkSteady(told, id);
    checkAccurate(told, id);
  }
});

/** The look before which the backfill is resumed. */
const RESUMED = 14;

test('the forecast after a pause says that the backfill was resumed, and the others say that it takes no turns meanwhile', {
  timeout: 240_000,
}, async () => {
  const coinIds = await begin(['a', 'b']);
  const [one, other] = [await record(coinIds.slice(0, 3), 100), await record(coinIds.slice(3, 6), 100)];
  const change = (what: 'pause' | 'resume') => changeBackfill(world.database.sql, other, what, world.clock.now());
  const told = await watch({ 8: () => change('pause'), [RESUMED]: () => change('resume') });
  const paused = told[12]!.rows.get(other)!;
  expect(paused).toMatchObject({ state: 'paused', finishAt: null, finishFrom: null, finishTo: null });
  expect(paused.progress).toBeGreaterThan(0.1);
  // It may also be a little faster than forecast, which needs no reason.
  const alone = told[10]!.rows.get(one)!;
  expect(alone.finishFrom).toBeLessThan(alone.finishAt! - 5_000);
  expect(checkSteady(told, one)).toEqual([
    `backfill ${other} no longer goes before it`,
    `backfill ${other} goes before it or takes turns with it`,
  ]);
  expect(checkSteady(told, other)).toContain('it was resumed');
  // Not before the other one is resumed, which nobody can foresee. The forecast is computed again every half minute.
  const resumed = told.slice(RESUMED + 8);
  for (const id of [one, other]) checkAccurate(resumed, id);
});
