/** What each plan really gives: every day of the tracked series and years of prices beside them, as forecast and without a request too many. */
import { expect, test } from 'vitest';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { liveAYear, type Year } from './year.ts';

/** The service looks for due work in steps of half an hour, so an end is seen that late. */
const STEP_DAYS = 0.03;

function expectAsForetold({ prices }: Year): void {
  const { unanswered, requests, days, gaps } = prices!;
  expect(unanswered).toBe(0);
  // A coin that has no prices at the end waits for a second answer.
  expect(gaps.filter((reason) => reason !== 'unconfirmed')).toEqual([]);
  expect(requests.sent).toBeLessThanOrEqual(requests.planned * 1.05);
  expect(days.took).toBeLessThanOrEqual(days.foretold * 1.05 + STEP_DAYS);
  expect(days.took).toBeGreaterThanOrEqual(days.foretold * 0.95 - STEP_DAYS);
}

/** At these rare times the lists of coins and tickers use little of the machine. */
const SELDOM = { CHANDLER_SCHEDULE_TICKERS: '0 */3 * * *' };
const NO_CATALOGUE = Object.fromEntries(
  CATALOGUE_KINDS.map((kind) => [`CHANDLER_SCHEDULE_${kind.toUpperCase()}`, 'off']),
);

/**
 * The free plan, a fifth of everything: of its 1,000 requests a day, of what its schedules take of them (about 210), and of the coins. With
 * all of it: `npm run bench -- year`.
 */
const A_FIFTH = {
  plan: 'free',
  perDay: 200,
  sinceDays: 1,
  prices: 500,
  // The year that the plan shows moves on meanwhile.
  pricesDays: 355,
  coins: 600,
  env: {
    ...NO_CATALOGUE,
    CHANDLER_SCHEDULE_TICKERS: '0 */2 * * *',
    CHANDLER_SCHEDULE_GLOBAL: '30 */2 * * *',
  },
} as const;

test('free: coins tracked daily have every day, and prices of eight times as many coins are complete within seven days', {
  timeout: 900_000,
}, async () => {
  // With 500, the last coin gets the last request of a day. One request more or less would make all complete a whole day later or sooner.
  const year = await liveAYear({ ...A_FIFTH, days: 7, tracked: 60, prices: 480 });
  expect(year).toMatchObject({ daysMissing: [], limited: 0, differences: [] });
  expect(year.candles.held).toBe(year.candles.foretold);
  expect(year.peak.day).toBeLessThanOrEqual(A_FIFTH.perDay);
  expect(year.prices!.days.took).toBeLessThanOrEqual(7);
  expectAsForetold(year);
});

test('free: with nothing tracked, the prices are complete within four days', { timeout: 900_000 }, async () => {
  const year = await liveAYear({ ...A_FIFTH, days: 4, tracked: 0 });
  expect(year).toMatchObject({ limited: 0, differences: [] });
  expect(year.peak.day).toBeLessThanOrEqual(A_FIFTH.perDay);
  expect(year.prices!.days.took).toBeLessThanOrEqual(4);
  expectAsForetold(year);
});

test.each([
  // Thirty days of candles, and five years of prices.
  { plan: 'starter', sinceDays: 28, pricesDays: 5 * 364, env: SELDOM },
  // A year of candles, and all prices. The catalogue, which sends most of the requests there, is tested beside the other plan.
  { plan: 'business', sinceDays: 300, pricesDays: 8 * 365, env: { ...SELDOM, ...NO_CATALOGUE } },
] as const)(
  '$plan: tracked series have every day of the history, and prices are complete on the first day',
  { timeout: 600_000 },
  async (of) => {
    const year = await liveAYear({ ...of, days: 4, tracked: 40, prices: 200, coins: 260 });
    expect(year).toMatchObject({ daysMissing: [], limited: 0, differences: [] });
    expect(year.candles.held).toBe(year.candles.foretold);
    expect(year.prices!.requests.planned).toBe(200);
    expectAsForetold(year);
  },
);
