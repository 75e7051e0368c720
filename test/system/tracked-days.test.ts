/** The free plan: coins that are tracked daily have every day since the start, whatever happens meanwhile. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { daysMissing, type TrackedDays, trackDaily } from './tracked-days.ts';

const START = Date.UTC(2026, 8, 20, 9);
const FIRST_DAY = Math.floor(START / DAY) * DAY - DAY;
let lived: TrackedDays;
afterEach(() => lived.world.close());

const limited = () =>
  lived.world.database.sql`select from ops.fetch where status in (402, 429) or outcome in ('limited', 'refused')`;

test('coins tracked daily have every day as final, for one request a coin and day', async () => {
  lived = await trackDaily({
    startAt: START,
    coins: 20,
    targetAgeMs: DAY,
    perDay: 30,
    latestTurnsAfterMs: 50 * 60_000,
  });
  const days = 3;
  await lived.liveUntil(FIRST_DAY + DAY + days * DAY);
  expect(await daysMissing(lived.world, FIRST_DAY, FIRST_DAY + days * DAY)).toEqual([]);
  // Each day is late for the first coins that are requested.
  expect(lived.asked.latest).toBeLessThanOrEqual(20 * days + 4 * days);
  expect(lived.asked).toMatchObject({ today: 0, historical: 0 });
  expect(await limited()).toEqual([]);
});

test('the last full day counts from its midnight, so the open day comes within the target age', async () => {
  lived = await trackDaily({ startAt: FIRST_DAY + 5 * HOUR, coins: 5, targetAgeMs: 12 * HOUR, perDay: 60 });
  await lived.liveUntil(FIRST_DAY + 8 * HOUR);
  expect(lived.asked).toEqual({ latest: 5, today: 0, historical: 0 });
  // Three times a day. Twelve hours and a run later would be too late.
  await lived.liveUntil(FIRST_DAY + 9 * HOUR);
  expect(lived.asked).toEqual({ latest: 5, today: 5, historical: 0 });
  await lived.liveUntil(FIRST_DAY + 17 * HOUR);
  expect(lived.asked).toEqual({ latest: 5, today: 10, historical: 0 });
});
