import { afterEach, describe, expect, test } from 'vitest';
import { DAY, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import { type FaultName, parseFaultSpec } from '../../src/simulator/faults/fault-spec.ts';
import { fill } from '../support/fill.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const TODAY = Math.floor(NOW / DAY) * DAY;
const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
const work = (interval: Interval, slots: number) => ({
  coins: COINS,
  interval,
  from: TODAY - 3 * DAY - slots * INTERVAL_MS[interval],
  to: TODAY - 3 * DAY,
});

let world: World;
afterEach(() => world?.close());
const asked = () => world.simulator.counters().requests.ohlcv;

describe('the requests of a backfill', () => {
  test.each([
    ['24h', 2_000],
    ['1h', 1_099],
    ['5m', 366],
    ['6h', 367],
  ] as const)(
    'of %s candles are exactly the fewest possible: %i slots of each coin, 366 at a time',
    async (interval, slots) => {
      world = await createWorld({ startAt: NOW, simulator: { seed: 3, coins: 12, unlimited: true } });
      const chandler = await world.open();
      const run = await chandler.backfill(work(interval, slots));
      expect(run.end).toEqual({ kind: 'done' });
      expect(asked()).toBe(COINS.length * Math.ceil(slots / 366));
      expect(run.planned).toBe(asked());
      expect((await world.database.sql`select from market.gaps`).length).toBe(0);
      // Counted here as the upstream counted them, including lists of coins.
      const [ledger] = await world.database.sql<
        { n: number }[]
      >`select sum(month_spent)::int as n from ops.quota_spent`;
      expect(ledger!.n).toBe(world.simulator.counters().requests.total);
      expect((await chandler.backfill(work(interval, slots))).planned).toBe(0);
      expect(asked()).toBe(run.planned);
    },
  );

  test('are one for holes that fit one request', async () => {
    world = await createWorld({ startAt: NOW, simulator: { seed: 3, coins: 12, unlimited: true } });
    const chandler = await world.open();
    const whole = work('24h', 300);
    for (const [from, to] of [
      [20, 60],
      [100, 130],
      [200, 260],
    ] as const) {
      await chandler.backfill({ ...whole, from: whole.from + from * DAY, to: whole.from + to * DAY });
    }
    const before = asked();
    await chandler.backfill(whole);
    expect(asked() - before).toBe(COINS.length);
  });

  test.each(['no limits', 'a pace'])(
    'with 10 percent faults are the fewest possible and one more for each that failed (%s)',
    async (how) => {
      const faults = parseFaultSpec('500:0.025,502:0.025,reset:0.025,truncated:0.025,seed=2');
      if (!faults.ok) throw new Error(faults.problem);
      world = await createWorld({
        startAt: NOW,
        speed: 50,
        simulator: { seed: 3, coins: 12, unlimited: true },
        faults: () => faults.spec,
        ...(how === 'no limits' ? {} : { limits: { perMonth: null, perSecond: 20 } }),
      });
      const chandler = await world.open({ candlesPerRequest: 20 });
      const ofLists = Object.values(world.simulator.counters().faults).reduce((sum, n) => sum + n, 0);
      const target = { ...work('24h', 1_000), concurrency: 4 };
      await fill(world, chandler, target);
      const { faults: injected } = world.simulator.counters();
      const failed = Object.values(injected as Record<FaultName, number>).reduce((sum, n) => sum + n, 0) - ofLists;
      expect(failed).toBeGreaterThan(8);
      expect(asked()).toBe(COINS.length * 50 + failed);
      const [rows] = await world.database.sql<{ stored: number; failed: number; again: number }[]>`
      select count(*) filter (where outcome = 'stored')::int as stored, count(*) filter (where outcome <> 'stored')::int as failed,
        count(*) filter (where attempt > 1)::int as again
      from ops.fetch where endpoint = 'ohlcv'`;
      expect(rows).toEqual({ stored: COINS.length * 50, failed, again: failed });
    },
  );
});
