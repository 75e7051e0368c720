/** A backfill that waits for an exhausted month goes on when the account turns out to have more, not only at the end of the month. */
import { afterEach, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { scheduleVariable } from '../../src/ingest/schedule/schedule-plan.ts';
import { SCHEDULES } from '../../src/ingest/schedule/schedules.ts';
import { queueBackfill } from '../../src/store/backfill/backfill-queue.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import { createServiceWorld, type ServiceWorld } from '../support/service-world.ts';

const START = Date.UTC(2026, 5, 10, 12);
const SECOND = 1_000;

let world: ServiceWorld;
afterEach(() => world?.close());

test('a backfill that waits for an exhausted month goes on when the limit grows', { timeout: 240_000 }, async () => {
  world = await createServiceWorld({
    startAt: START,
    redis: null,
    env: {
      CHANDLER_PLAN: 'enterprise',
      ...Object.fromEntries(SCHEDULES.map(({ name }) => [scheduleVariable(name), 'off'])),
      CHANDLER_SCHEDULE_COINS: '7 0 * * *',
    },
    simulator: { seed: 5, coins: 5, limits: { plan: 'enterprise' } },
  });
  await world.start('a');
  const [coinId] = await world.untilListed();
  const { sql } = world.database;
  // As the upstream reports it when others have used the key.
  await sql`update ops.quota set month_limit = 1000, month_limit_known = true, month_spent = 1000`;
  const to = START - 4 * DAY - (START % DAY);
  const target = { coinIds: [coinId!], interval: '24h', quote: 'usd', span: { from: to - 20 * DAY, to } } as const;
  await wantSeries(sql, { ...target, priority: 0 });
  const id = await queueBackfill(sql, {
    ...target,
    requestedAt: world.clock.now(),
    spec: {},
    plannedRequests: 1,
    priority: 0,
  });
  const read = async () => (await readBackfills(sql, { all: true, id }))[0]!;
  const until = async (isThere: (state: string, waitUntil: number | null) => boolean) => {
    for (let i = 0; ; i++) {
      const { state, waitUntil } = await read();
      if (isThere(state, waitUntil)) return;
      expect(i, state).toBeLessThan(60);
      await world.advance(2 * SECOND);
    }
  };
  await until((state, waitUntil) => state === 'queued' && waitUntil !== null);
  expect(await read()).toMatchObject({ message: 'month' });
  expect((await read()).waitUntil).toBeGreaterThan(Date.UTC(2026, 6, 1) - SECOND);
  // It looked again, and the month is still exhausted.
  await world.advance(45 * SECOND);
  expect((await read()).waitUntil).not.toBeNull();

  await sql`update ops.quota set month_limit = 2000`;
  await until((state) => state === 'done');
  expect(await read()).toMatchObject({ spent: 1, message: null });
});
