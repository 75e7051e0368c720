/** Impossible rows, rarer cases. */
import { afterEach, describe, expect, test } from 'vitest';
import { HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import { fill } from '../support/fill.ts';
import { atBad, DAYS, make, quarantined, type Row, rewriting, stored, upstream, world } from './impossible.ts';

afterEach(() => world?.close());

describe('a row that stays impossible', () => {
  test('in another way each time is not taken as the final answer of the upstream', async () => {
    await make({ speed: 20 });
    let n = 0;
    upstream.script = rewriting((rows) => {
      n++;
      return rows.map((row) => (atBad(row) && n <= 6 ? { ...row, volume: -n } : row));
    });
    const chandler = await world.open();
    await fill(world, chandler, DAYS);
    expect(upstream.ohlcv()).toHaveLength(7);
    const [first, last] = [upstream.ohlcv()[0]!.at, upstream.ohlcv()[6]!.at];
    expect(last - first).toBeGreaterThan(24 * HOUR + INTERVAL_MS['1h'] * 3);
    expect(await stored()).toHaveLength(30);
    expect((await world.database.sql`select from market.gaps`).length).toBe(0);
  });

  test('among nothing but garbage is a failed answer, not an empty one', async () => {
    await make({ speed: 100 });
    upstream.script = rewriting((rows) => rows.map(({ time_open }) => ({ time_open, price: 1 })));
    const run = await (await world.open()).backfill(DAYS);
    expect(run.failed).toHaveLength(1);
    expect(run.failed[0]!.message).toMatch(/cannot be used: no row has any of open, high, low, close/);
    expect(await stored()).toEqual([]);
    const gaps = await world.database.sql`select reason from market.gaps`;
    expect(gaps).toMatchObject([{ reason: 'not asked yet' }]);
  });
});

describe('a row that cannot be read', () => {
  const unreadable = rewriting((rows) => rows.map((row) => (atBad(row) ? { ...row, close: '12' } : row)));

  test.each([1, 7])('is handled the same in answers of %i rows', async (candlesPerRequest) => {
    await make();
    upstream.script = unreadable;
    const chandler = await world.open({ candlesPerRequest });
    await fill(world, chandler, { ...DAYS, concurrency: 1 });
    expect(await world.database.sql`select slots::int, reason from market.gaps`).toEqual([
      { slots: 1, reason: 'malformed' },
    ]);
    expect((await stored()).length).toBe(29);
  });

  test('without any price is quarantined, however many rows an answer has', async () => {
    for (const candlesPerRequest of [366, 1]) {
      await make();
      const bare = ({ time_open, time_close }: Row) => ({ time_open, time_close, volume: 5 });
      upstream.script = rewriting((rows) => rows.map((row) => (atBad(row) ? bare(row) : row)));
      await fill(world, await world.open({ candlesPerRequest }), { ...DAYS, concurrency: 1 });
      expect((await stored()).length).toBe(29);
      expect((await quarantined())[0]!.reason).toBe('has none of open, high, low, close');
      expect((await world.database.sql`select reason from market.gaps`).map((gap) => gap.reason)).toEqual([
        'malformed',
      ]);
      if (candlesPerRequest > 1) await world.close();
    }
  });
});
