/** A forecast outside the range that was reported gives a reason. */
import { expect, test } from 'vitest';
import { type Forecasted, finishToShow } from '../../../src/background/service/finish-change.ts';
import { type FinishBasis, UNKNOWN_FINISH } from '../../../src/store/backfill/backfill-finish.ts';

const NOW = Date.UTC(2026, 5, 10, 12);
const MINUTE = 60_000;
const basis: Omit<FinishBasis, 'from' | 'to'> = {
  madeAt: NOW,
  left: 600,
  others: { 7: 300 },
  gapMs: 200,
  perChunk: 1,
  hold: null,
  window: 'second',
};
const forecast = (minutes: number, change: Partial<typeof basis> = {}): Forecasted => {
  const at = NOW + minutes * MINUTE;
  return { at, from: at - MINUTE, to: at + MINUTE, basis: { ...basis, madeAt: NOW + MINUTE, ...change } };
};
const told = finishToShow(UNKNOWN_FINISH, forecast(10, { madeAt: NOW }));

test('the first forecast, and one within the range, give no reason', () => {
  expect(told).toMatchObject({ at: NOW + 10 * MINUTE, change: null, changedAt: null });
  expect(finishToShow(told, forecast(10.9))).toMatchObject({ at: NOW + 10.9 * MINUTE, change: null });
});

test('the reported range stands until a forecast leaves it, and may become narrower', () => {
  const [from, to] = [NOW + 9 * MINUTE, NOW + 11 * MINUTE];
  expect(finishToShow(told, forecast(10.4))).toMatchObject({ at: NOW + 10.4 * MINUTE, from, to });
  const narrow = { ...forecast(10.4), from: NOW + 10 * MINUTE, to: NOW + 10.8 * MINUTE };
  expect(finishToShow(told, narrow)).toMatchObject({ from: narrow.from, to: narrow.to, change: null });
});

test('many small steps count from the reported forecast, not from the step before', () => {
  const steps = [10.5, 10.9, 11.3].reduce(
    (last, minutes) => finishToShow(last, forecast(minutes, { gapMs: 220 })),
    told,
  );
  expect(steps.change).toBe('backfills get 4.5 requests/s, not 5 requests/s');
});

test.each([
  ['another one came', 20, { others: { 7: 300, 9: 900 } }, 'backfill 9 goes before it or takes turns with it'],
  ['another one ended', 5, { others: {} }, 'backfill 7 no longer goes before it'],
  ['the upstream is slower', 20, { gapMs: 400 }, 'backfills get 2.5 requests/s, not 5 requests/s'],
  ['more fails', 20, { perChunk: 2 }, 'more requests fail: 2.00 for each chunk, not 1.00'],
  ['more is left', 20, { left: 1_500 }, 'it needs 1,500 requests more, not 600'],
  [
    'everything waits',
    40,
    { hold: { until: NOW + 30 * MINUTE, reason: 'all requests wait (limited)' } },
    'all requests wait (limited), until 2026-06-10 12:30Z',
  ],
  [
    'the day is too short',
    900,
    { window: 'day' },
    'the requests of the day that backfills may send are too few to be done before it ends',
  ],
  ['nothing of it', 20, {}, 'it got fewer requests than was forecast'],
] as const)('%s', (_what, minutes, change, why) => {
  expect(finishToShow(told, forecast(minutes, change))).toMatchObject({ change: why, changedAt: NOW + MINUTE });
});
