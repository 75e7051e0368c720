/** What each plan really gives: every day of what is tracked, and years of prices beside it, as foretold and never one request too many. */
import { expect, test } from 'vitest';
import { liveAYear, type Year } from './year.ts';

/** The service looks for what is due in steps of half an hour, so an end is seen so late. */
const STEP_DAYS = 0.03;

function expectAsForetold({ prices }: Year): void {
  const { requests, days } = prices!;
  expect(requests.sent).toBeLessThanOrEqual(requests.planned * 1.05);
  expect(days.took).toBeLessThanOrEqual(days.foretold * 1.05 + STEP_DAYS);
  expect(days.took).toBeGreaterThanOrEqual(days.foretold * 0.95 - STEP_DAYS);
}

test('free: 300 coins tracked daily have every day, and beside them 2,500 coins a year of prices within seven days', {
  timeout: 1_200_000,
}, async () => {
  const year = await liveAYear({
    plan: 'free',
    days: 8,
    tracked: 300,
    sinceDays: 1,
    prices: 2_500,
    pricesDays: 362,
    coins: 3_000,
  });
  console.info(year);
  expect(year).toMatchObject({ daysMissing: [], limited: 0, differences: [] });
  expect(year.peak.day).toBeLessThanOrEqual(1_000);
  expect(year.prices!.days.took).toBeLessThanOrEqual(7);
  expectAsForetold(year);
});
