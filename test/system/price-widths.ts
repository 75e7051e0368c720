/**
 * Price series of every width, from minutes to years: they equal the market, and verify finds no difference before and after the newest
 * slot is final. The narrowest, an hour, a day and the widest run in `npm test`, the others in the deep tests.
 */
import { expect, test } from 'vitest';
import { DAY, floorToGrid, INTERVAL_MS, PRICE_INTERVALS, type PriceInterval } from '../../src/core/interval.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { verifyWarehouse } from '../../src/views/verify/warehouse.ts';
import { fill } from '../support/fill.ts';
import { createWorld } from '../support/world.ts';
import { checkStored, missingOf, seriesOf } from './oracle.ts';

const NOW = Date.UTC(2026, 10, 25, 19, 11);
const COINS = ['btc-bitcoin', 'eth-ethereum'];

const MAIN: readonly PriceInterval[] = ['prices-5m', 'prices-1h', 'prices-1d', 'prices-365d'];
const OTHERS = PRICE_INTERVALS.filter((interval) => !MAIN.includes(interval));

export function testPriceWidths(which: 'main' | 'others'): void {
  test.each(which === 'main' ? MAIN : OTHERS)('prices of the width %s equal the market', async (interval) => {
    const world = await createWorld({ startAt: NOW, simulator: { coins: 4 } });
    try {
      const chandler = await world.open({ pricesPerRequest: 7 });
      const width = INTERVAL_MS[interval];
      const to = floorToGrid(NOW, interval) + width;
      const from = Math.max(to - 20 * width, floorToGrid(NOW - 8 * 365 * DAY, interval));
      const target = { coins: COINS, interval, from, to };
      const check = async () => {
        await checkStored(world, interval);
        expect(await verifyWarehouse(world.database.sql)).toEqual([]);
      };
      await chandler.backfill(target);
      await check();
      // The newest slots are stored, and not final.
      for (const series of await seriesOf(world))
        expect((await missingOf(world, series, to)).at(-1)).toMatchObject({ to });
      await fill(world, chandler, target);
      await check();
      for (const series of await seriesOf(world)) expect(await missingOf(world, series, to)).toEqual([]);
      expect(world.clock.now()).toBeGreaterThan(to + Math.min(width, DAY));
      // Not later than needed.
      expect(world.clock.now()).toBeLessThan(to + Math.min(width, DAY) + 2 * DAY);

      // One slot differs, is repaired, and is requested again.
      const { sql } = world.database;
      const hash = await sql`select id, digest from market.series order by id`;
      const lost = floorToGrid(from + (to - from) / 2, interval);
      await sql`delete from market.price where time = ${lost}::timestamptz and series_id = ${Number(hash[0]!.id)}`;
      const wrong = [];
      for await (const proof of verifySeries(sql, {}, world.clock.now()))
        if (proof.mending.length > 0) wrong.push(proof);
      expect(wrong.map(({ mending }) => mending)).toEqual([[{ from: lost, to: lost + width }]]);
      await sql`select ops.uncover(${wrong[0]!.seriesId}, ${lost}::timestamptz, ${lost + width}::timestamptz)`;
      expect((await chandler.backfill(target)).totals?.requests).toBe(1);
      expect(await sql`select id, digest from market.series order by id`).toEqual(hash);
      for await (const proof of verifySeries(sql, {}, world.clock.now())) expect(proof.differences).toEqual([]);
    } finally {
      await world.close();
    }
  });
}
