/** What an answer shows about the freshness of a tracked series, through the real client, handler and store. */
import { afterAll, expect, test } from 'vitest';
import { ceilToGrid, DAY, HOUR } from '../../src/core/interval.ts';
import { keepTracks, takeDueChunks } from '../../src/ingest/tracking/freshness.ts';
import { topCoins } from '../../src/store/snapshot/coin.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { readTierStatus } from '../../src/views/operations/tiers.ts';
import { createWorld, type World } from '../support/world.ts';

let world: World;
afterAll(() => world?.close());

test('an answer at the newest end makes a tracked series fresh; an answer about the past does not', async () => {
  const startAt = Date.UTC(2025, 2, 10, 15, 30);
  world = await createWorld({ startAt, simulator: { coins: 6 } });
  const chandler = await world.open();
  const { sql } = world.database;
  const coins = (await topCoins(sql, 2)).map((coin) => coin.id);
  const since = Date.UTC(2025, 2, 1);
  const rule = { interval: '1h', quote: 'usd', since, priority: 0, targetAgeMs: HOUR } as const;
  await addTracks(
    sql,
    coins.map((coinId) => ({ ...rule, tier: 'list', coinId })),
    startAt,
  );
  const { plan, historyLimits } = chandler.session;
  await keepTracks({
    sql,
    now: startAt,
    requestsPerDay: null,
    candlesPerRequest: plan.candlesPerRequest,
    historyLimits,
    tickMs: 0,
  });
  const chunks = await takeDueChunks(sql, {
    now: startAt,
    room: { all: 10, late: 10 },
    tickMs: 0,
    plan,
    historyLimits,
  });
  expect(chunks.map((c) => ({ coinId: c.coinId, from: c.from, to: c.to }))).toEqual(
    coins.map((coinId) => ({ coinId, from: since, to: ceilToGrid(startAt, '1h') })),
  );

  await chandler.backfill({ coins, interval: '1h', from: since, to: since + DAY });
  expect(await readTierStatus(sql, world.clock.now())).toMatchObject([{ unseen: 2, medianAgeMs: null }]);
  await chandler.backfill({ coins, interval: '1h', from: since, to: ceilToGrid(startAt, '1h') });
  const [status] = await readTierStatus(sql, world.clock.now());
  expect(status).toMatchObject({ unseen: 0 });
  expect(status!.oldestAgeMs).toBeLessThan(10 * 60_000);
  const [row] = await sql<{ provisional: number }[]>`
    select count(*)::int as provisional from market.candles where not is_final`;
  expect(row!.provisional).toBeGreaterThan(0);
  // Both are complete. When they are due, only the newest end is requested.
  const later = startAt + 3 * HOUR;
  const again = await takeDueChunks(sql, { now: later, room: { all: 10, late: 10 }, tickMs: 0, plan, historyLimits });
  expect(again).toHaveLength(2);
  for (const chunk of again) {
    expect(chunk.to).toBe(ceilToGrid(later, '1h'));
    expect(chunk.slots).toBeLessThanOrEqual(6);
  }
});
