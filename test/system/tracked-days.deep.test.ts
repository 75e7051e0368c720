/** The free plan, and an outage: coins that are tracked daily have every day since the start. */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { daysMissing, type TrackedDays, trackDaily } from './tracked-days.ts';

const START = Date.UTC(2026, 8, 20, 9);
const FIRST_DAY = Math.floor(START / DAY) * DAY - DAY;
let lived: TrackedDays;
afterEach(() => lived.world.close());

test('an outage of hours costs no day', async () => {
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
