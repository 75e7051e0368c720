/** The free plan, an outage, and the open day: coins that are tracked daily have every day since the start. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { daysMissing, type TrackedDays, trackDaily } from './tracked-days.ts';

const START = Date.UTC(2026, 8, 20, 9);
const FIRST_DAY = Math.floor(START / DAY) * DAY - DAY;
let lived: TrackedDays;
afterEach(() => lived.world.close());

test('coins tracked daily lose no day in an outage of hours', async () => {
  const down = { from: FIRST_DAY + 2 * DAY + 3 * HOUR, to: FIRST_DAY + 2 * DAY + 20 * HOUR };
  lived = await trackDaily({
    startAt: START,
    coins: 10,
    targetAgeMs: DAY,
    perDay: 100,
    isDown: (now) => now >= down.from && now < down.to,
  });
  await lived.liveUntil(FIRST_DAY + 5 * DAY);
  expect(await daysMissing(lived.world, FIRST_DAY, FIRST_DAY + 4 * DAY)).toEqual([]);
});

test('coins with a target age below a day get the open day between the full days', async () => {
  lived = await trackDaily({ startAt: START, coins: 5, targetAgeMs: 4 * HOUR, perDay: 60 });
  await lived.liveUntil(FIRST_DAY + 3 * DAY);
  expect(await daysMissing(lived.world, FIRST_DAY, FIRST_DAY + 2 * DAY)).toEqual([]);
  expect(lived.asked.today).toBeGreaterThan(5 * 2);
  expect(lived.asked.historical).toBe(0);
  const [open] = await lived.world.database.sql`
    select count(*)::int as n from market.candles where not is_final and open_time = ${FIRST_DAY + 2 * DAY}`;
  expect(open).toEqual({ n: 5 });
});
