/**
 * A year of the service in virtual time: 300 coins tracked daily under each plan, undisturbed. Every day of each coin must be stored and
 * final, never with one request too many. `YEAR_DAYS=30` is a quick look, `-t free` one plan. With prices beside it:
 * `test/system/year.deep.test.ts`.
 */
import { expect, test } from 'vitest';
import { HOUR } from '../../src/core/interval.ts';
import { liveAYear } from '../system/year.ts';

const DAYS = Number(process.env.YEAR_DAYS ?? 365);
const STEP_MS = Number(process.env.YEAR_STEP_HOURS ?? 2) * HOUR;
/** How many days of candles before the start each plan allows. */
const SINCE = { free: 1, starter: 28, business: 300 } as const;

test.each(['free', 'starter', 'business'] as const)(
  'a year of 300 coins with the plan %s',
  { timeout: 6 * 3_600_000 },
  async (plan) => {
    const begun = performance.now();
    const year = await liveAYear({
      plan,
      days: DAYS,
      tracked: 300,
      sinceDays: SINCE[plan],
      prices: 0,
      pricesDays: 0,
      coins: 340,
      stepMs: STEP_MS,
    });
    const { candles, peak, requests, daysMissing } = year;
    const took = ((performance.now() - begun) / 60_000).toFixed(1);
    console.info(
      `${plan}: ${DAYS} days; ${candles.held} of ${candles.foretold} days of coins are final; ${requests} requests, at most ${peak.day} a day and ${peak.month} a month; ${took} min`,
    );
    expect({ ...year, daysMissing: daysMissing.slice(0, 20) }).toMatchObject({
      daysMissing: [],
      limited: 0,
      differences: [],
    });
    expect(candles.held).toBe(candles.foretold);
  },
);

test('free: 300 coins tracked daily, and 2,500 coins with a year of prices beside them', {
  timeout: 3_600_000,
}, async () => {
  const year = await liveAYear({
    plan: 'free',
    days: 8,
    tracked: 300,
    sinceDays: 1,
    prices: 2_500,
    pricesDays: 355,
    coins: 2_900,
  });
  const { daysMissing, candles, prices, peak } = year;
  console.info(
    `free: ${candles.held} of ${candles.foretold} days of coins are final; prices took ${prices!.days.took.toFixed(2)} days, foretold ${prices!.days.foretold.toFixed(2)}; at most ${peak.day} requests a day`,
  );
  expect({ ...year, daysMissing: daysMissing.slice(0, 20) }).toMatchObject({
    daysMissing: [],
    limited: 0,
    differences: [],
  });
  expect(prices!.unanswered).toBe(0);
});
