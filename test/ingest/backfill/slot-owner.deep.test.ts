/** A rule is removed while its backfill runs; the other cases are in `slot-owner.test.ts`. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { become, COINS, closers, NOW, open, SPAN, service, stateOf, until, world } from './backfill-runner.ts';
import { audits, chandler, track } from './slot-owner.ts';

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await world?.close();
});

test('a running backfill of the past leaves out a coin whose rule is removed, and continues with the others', async () => {
  const audit = audits(await open({ simulator: { seed: 5, coins: 12, latencyMs: 300 } }));
  await track(COINS, SPAN.from);
  expect(await audit()).toEqual([1]);
  const { begun, errors } = await service('a:1', { candlesPerRequest: 60 });
  await until(async () => expect((await stateOf(1)).spent).toBeGreaterThan(0));
  await chandler('track', 'remove', 'ltc-litecoin');
  const asked = () => world.database.sql`
    select f.id from ops.fetch f join market.series s on s.id = f.series_id where s.coin_id = 'ltc-litecoin'`;
  await until(() => expect(begun).toEqual([1, 1]));
  const before = (await asked()).length;
  await become(1, 'done');
  expect(await asked()).toHaveLength(before);
  expect(await stateOf(1)).toMatchObject({ coins: 2, leftRequests: 0 });
  // Freshness keeps what is younger.
  const past = NOW - 370 * DAY;
  expect(await world.database.sql`select coin_id from market.gaps where gap_from < ${past}`).toEqual([]);
  expect(errors).toEqual([]);
});
