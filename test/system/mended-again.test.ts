/** A second and a third damage within one answer: verify names each, and the repair that it prints ends it. */
import { expect, test } from 'vitest';
import { DAY, floorToGrid, type Interval } from '../../src/core/interval.ts';
import { type SeriesProof, verifySeries } from '../../src/views/operations/verify.ts';
import { fill } from '../support/fill.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = floorToGrid(Date.now(), '24h');

async function proofOf({ database, clock }: World): Promise<SeriesProof> {
  const proofs: SeriesProof[] = [];
  for await (const proof of verifySeries(database.sql, {}, clock.now())) proofs.push(proof);
  expect(proofs).toHaveLength(1);
  return proofs[0]!;
}

const DAMAGE: Readonly<Record<'candle' | 'price', Readonly<Record<'changed' | 'gone', string>>>> = {
  candle: {
    changed: 'update market.candle set high = high * 1.1, close = close * 1.01 where open_time = $1',
    gone: 'delete from market.candle where open_time = $1',
  },
  price: {
    changed: 'update market.price set price = price * 1.01 where time = $1',
    gone: 'delete from market.price where time = $1',
  },
};

const ORDERS = [
  ['changed', 'changed', 'changed'],
  ['changed', 'gone', 'changed'],
  ['gone', 'changed', 'gone'],
] as const;
const CASES = (['24h', 'prices-1d'] as const).flatMap((interval) => ORDERS.map((order) => [interval, order] as const));

test.each<readonly [Interval, (typeof ORDERS)[number]]>(CASES)('verify repairs %s: %j', async (interval, order) => {
  const world = await createWorld({ startAt: NOW, simulator: { coins: 6 } });
  try {
    const chandler = await world.open();
    const target = { coins: ['btc-bitcoin'], interval, from: NOW - 300 * DAY, to: NOW - 3 * DAY } as const;
    await fill(world, chandler, target);
    const { hash } = await proofOf(world);
    const { sql } = world.database;
    const damage = DAMAGE[interval === '24h' ? 'candle' : 'price'];
    for (const [i, kind] of order.entries()) {
      const at = NOW - [100, 200, 50][i]! * DAY;
      await sql.unsafe(damage[kind], [at]);
      const found = await proofOf(world);
      const day = (time: number) => `${new Date(time).toISOString().slice(0, 10)} 00:00Z`;
      expect(found.differences[0]).toContain(`${day(at)} to ${day(at + DAY)}: `);
      expect(found.stretches).toEqual([{ from: at, to: at + DAY }]);
      await sql`select ops.uncover(${found.seriesId}, ${at}::timestamptz, ${at + DAY}::timestamptz)`;
      world.clock.advanceTo(world.clock.now() + 60_000);
      await fill(world, chandler, target);
      const mended = await proofOf(world);
      expect(mended).toMatchObject({ differences: [], hash });
      expect(mended.notes.at(-1)).toContain(`the slot ${new Date(at).toISOString().slice(0, 10)} 00:00:00Z differs`);
    }
  } finally {
    await world.close();
  }
});
