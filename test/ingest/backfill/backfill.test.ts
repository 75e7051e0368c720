import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { abandonExpired } from '../../../src/store/backfill/backfill.ts';
import { LEASE_EXPIRES_AFTER_MS } from '../../../src/store/work/lease.ts';
import { verifySeries } from '../../../src/views/operations/verify.ts';
import { createWorld, type World, type WorldOptions } from '../../support/world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});
async function make(options: WorldOptions = {}): Promise<World> {
  world = await createWorld(options);
  return world;
}

const NOW = Date.UTC(2026, 10, 1, 12);
const YEAR = 366 * DAY;

describe('a clean backfill', () => {
  test('spends exactly the fewest requests, stores every candle, and leaves nothing to request', async () => {
    const { open, simulator, database } = await make({ startAt: NOW });
    const chandler = await open();
    const before = simulator.counters().requests.ohlcv;
    const run = await chandler.backfill({
      coins: ['btc-bitcoin'],
      from: NOW - 5 * YEAR - (NOW % DAY),
      to: NOW - (NOW % DAY) - 3 * DAY,
    });
    expect(run.end).toEqual({ kind: 'done' });
    expect(run.failed).toEqual([]);
    expect(simulator.counters().requests.ohlcv - before).toBe(run.planned);
    const proofs = [];
    for await (const proof of verifySeries(database.sql, {}, NOW)) proofs.push(proof);
    expect(proofs).toMatchObject([{ differences: [], coinId: 'btc-bitcoin' }]);
    expect(proofs[0]!.candles).toBeGreaterThan(1_700);
    const again = await chandler.backfill({
      coins: ['btc-bitcoin'],
      from: NOW - 5 * YEAR - (NOW % DAY),
      to: NOW - (NOW % DAY) - 3 * DAY,
    });
    expect(again.planned).toBe(0);
    expect(simulator.counters().requests.ohlcv - before).toBe(run.planned);
  });
});

test('a run that another host takes for dead, because the clock of that host is ahead, loses none of its chunks', async () => {
  const { open, clock, database, simulator } = await make({
    startAt: NOW,
    limits: { perSecond: 20 },
    fetch: (simulated) => async (request) => {
      if (request.url.includes('/ohlcv') && ++asked === 10)
        await abandonExpired(database.sql, clock.now() + 2 * LEASE_EXPIRES_AFTER_MS);
      return simulated(request);
    },
  });
  let asked = 0;
  const chandler = await open({ candlesPerRequest: 10 });
  const run = await chandler.backfill({
    coins: ['btc-bitcoin'],
    from: NOW - YEAR - (NOW % DAY),
    to: NOW - (NOW % DAY) - 3 * DAY,
  });
  expect(run).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect(simulator.counters().requests.ohlcv).toBe(run.planned);
});
