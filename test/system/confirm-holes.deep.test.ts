/** A service that dies while it confirms holes. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { applyTracks } from '../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../src/store/tracking/track-rule.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';
import { readHoles, without } from './confirm-holes.ts';

let world: ServiceWorld;
afterEach(() => world?.close());

test('another service confirms the rest after a service was killed while it confirmed holes, and nothing is lost', async () => {
  const START = Date.UTC(2026, 10, 18, 12);
  const since = Date.UTC(2026, 10, 18) - 300 * DAY;
  let lies = true;
  /** The request at which the process dies, counted from when the upstream tells the truth. */
  const DIES_AT = 3;
  let asked = 0;
  let dies: (() => void) | null = null;
  const isHole = (at: number) => Math.round((at - since) / DAY) % 50 === 20;
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_REQUESTS_PER_SECOND: 'unlimited',
      CHANDLER_CANDLES_PER_REQUEST: '100',
      CHANDLER_SCHEDULE_TICKERS: 'off',
      CHANDLER_SCHEDULE_GLOBAL: 'off',
      CHANDLER_SCHEDULE_EXCHANGES: 'off',
      CHANDLER_SCHEDULE_FRESHNESS: 'off',
      CHANDLER_SCHEDULE_COINS: '7 */6 * * *',
      CHANDLER_SCHEDULE_GAPS: '*/30 * * * *',
      CHANDLER_SCHEDULE_CONFIRM_HOLES: '30 * * * *',
    },
    simulator: { seed: 3, coins: 4, unlimited: true },
    script: (request, simulated) => {
      if (!request.url.includes('/ohlcv')) return null;
      if (!lies && ++asked === DIES_AT) dies?.();
      return simulated(request).then((answer) => without(answer, (at) => lies && isHole(at)));
    },
  });
  const { sql } = world.database;
  const first = await world.start('a');
  const coins = await world.untilListed();
  await addTracks(
    sql,
    coins.map((coinId) => ({
      tier: 'list' as const,
      coinId,
      interval: '24h' as const,
      quote: 'usd' as const,
      since,
      priority: 0,
      targetAgeMs: DAY,
    })),
    world.clock.now(),
  );
  // Without the schedule of freshness nothing else applies the rules.
  await applyTracks(sql, world.clock.now());
  for (let i = 0; i < 12 && (await readHoles(sql)).once === 0; i++) await world.advance(HOUR / 4);
  const told = (await readHoles(sql)).once;
  expect(told).toBeGreaterThan(8);
  lies = false;
  dies = () => first.kill();
  for (let i = 0; i < 24 && asked < DIES_AT; i++) await world.advance(HOUR / 4);
  expect(asked).toBe(DIES_AT);
  expect(world.services()).toHaveLength(0);
  const left = (await readHoles(sql)).once;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(told);

  await world.start('b');
  for (let i = 0; i < 24 && (await readHoles(sql)).once > 0; i++) await world.advance(HOUR / 4);
  expect(await readHoles(sql)).toEqual({ once: 0, twice: 0 });
  const [row] = await sql<{ spent: number; kept: number }[]>`
    select (select sum(month_spent)::int from ops.quota_spent where name = 'confirm_holes') as spent,
      (select count(*)::int from ops.fetch f where f.backfill_id is null and f.series_id is not null) as kept`;
  // The answer that the killed service waited for was requested and counted twice.
  expect(row!.spent).toBe(asked);
  expect(row!.kept).toBe(asked - 1);
  await world.advance(6 * HOUR);
  expect(asked).toBe(row!.spent);
});
