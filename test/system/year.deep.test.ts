/** What each plan really gives: every day of what is tracked, and years of prices beside it, as foretold and never one request too many. */
import { expect, test } from 'vitest';
import { liveAYear, type Year } from './year.ts';

/** The service looks for what is due in steps of half an hour, so an end is seen so late. */
const STEP_DAYS = 0.03;

function expectAsForetold({ prices }: Year): void {
  const { unanswered, requests, days, gaps } = prices!;
  expect(unanswered).toBe(0);
  // Of a coin that has no prices at the end, a second answer is due.
  expect(gaps.filter((reason) => reason !== 'unconfirmed')).toEqual([]);
  expect(requests.sent).toBeLessThanOrEqual(requests.planned * 1.05);
  expect(days.took).toBeLessThanOrEqual(days.foretold * 1.05 + STEP_DAYS);
  expect(days.took).toBeGreaterThanOrEqual(days.foretold * 0.95 - STEP_DAYS);
}

/** Each list of 2,000 tickers takes as long as fifty answers about candles. */
const SELDOM = { CHANDLER_SCHEDULE_TICKERS: '0 */3 * * *' };
const FREE = { plan: 'free', sinceDays: 1, prices: 2_500, pricesDays: 362, coins: 2_900, env: SELDOM } as const;

test('free: 300 coins tracked daily have every day, and beside them 2,500 coins a year of prices within seven days', {
  timeout: 1_200_000,
}, async () => {
  const year = await liveAYear({ ...FREE, days: 6, tracked: 300 });
  expect(year).toMatchObject({ daysMissing: [], limited: 0, differences: [] });
  expect(year.peak.day).toBeLessThanOrEqual(1_000);
  expect(year.prices!.days.took).toBeLessThanOrEqual(7);
  expectAsForetold(year);
});

test('free: with nothing tracked, 2,500 coins have a year of prices within four days', {
  timeout: 1_200_000,
}, async () => {
  const year = await liveAYear({ ...FREE, days: 4, tracked: 0 });
  expect(year).toMatchObject({ limited: 0, differences: [] });
  expect(year.peak.day).toBeLessThanOrEqual(1_000);
  expect(year.prices!.days.took).toBeLessThanOrEqual(4);
  expectAsForetold(year);
});

test.each([
  // Thirty days of candles, and five years of prices.
  { plan: 'starter', sinceDays: 28, pricesDays: 5 * 364 },
  // A year of candles, and all prices.
  { plan: 'business', sinceDays: 300, pricesDays: 8 * 365 },
] as const)(
  '$plan: what is tracked has every day of the history, and prices are there on the first day',
  { timeout: 600_000 },
  async (of) => {
    const year = await liveAYear({ ...of, days: 4, tracked: 40, prices: 200, coins: 260, env: SELDOM });
    expect(year).toMatchObject({ daysMissing: [], limited: 0, differences: [] });
    expect(year.candles.held).toBe(year.candles.foretold);
    expect(year.prices!.requests.planned).toBe(200);
    expectAsForetold(year);
  },
);
