/** When backfills are done, as it is told while two services run three of them, one request in nine fails, and all share the pace. */
import { afterEach, test } from 'vitest';
import { begin, checkAccurate, checkSteady, record, watch, world } from './backfill-finish.ts';

afterEach(() => world?.close());

test('the end that is told is right to a tenth in the last half, and says why it changes', {
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
