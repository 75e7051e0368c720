/** Which answers do not belong to the request. */
import { describe, expect, test } from 'vitest';
import { readOhlcvRows } from '../../../src/contract/record/ohlcv.ts';
import { DAY, HOUR, INTERVAL_MS, type Interval } from '../../../src/core/interval.ts';
import { answersOtherRequest } from '../../../src/ingest/chunk/other-request.ts';
import { validate } from '../../../src/ingest/chunk/validate.ts';

const START = Date.UTC(2024, 0, 1);
const NOW = START + 30 * DAY;
const TIME = { date: NOW, latest: NOW };

/** `closesAfter`: from `time_open` to `time_close`; null when the row has no `time_close`. */
const row = (openTime: number, closesAfter: number | null) => ({
  time_open: new Date(openTime).toISOString(),
  ...(closesAfter === null ? {} : { time_close: new Date(openTime + closesAfter).toISOString() }),
  ...{ open: 2, high: 3, low: 1, close: 2, volume: 5, market_cap: 7 },
});
const read = (rows: readonly unknown[]) => {
  const body = readOhlcvRows(rows);
  return body.ok ? body.rows : [];
};
const judge = (asked: Interval, rows: readonly unknown[]) => answersOtherRequest(asked, read(rows), TIME);
const quarantined = (asked: Interval, rows: readonly unknown[]) =>
  validate({ coinId: 'a', interval: asked, span: { from: START, to: NOW + DAY } }, read(rows), NOW).quarantined;

const SPELLINGS = [
  ['one second before the end', -1_000],
  ['exactly the end', 0],
  ['left out', null],
] as const;

describe.each([
  ['1h', '24h', 240],
  ['6h', '24h', 40],
  ['30m', '1h', 48],
  ['30m', '1h', 5],
  ['5m', '15m', 7],
] as const)('%s rows do not answer a request for %s', (told, asked, count) => {
  test.each(SPELLINGS)('time_close: %s', (_, end) => {
    const width = INTERVAL_MS[told];
    const rows = Array.from({ length: count }, (_, i) => row(START + i * width, end === null ? null : width + end));
    expect(judge(asked, rows)).toMatch(new RegExp(`not ${asked} candles`));
    expect(judge(told, rows)).toBeNull();
    expect(quarantined(told, rows)).toEqual([]);
  });
});

describe('a single odd row is quarantined alone', () => {
  const days = Array.from({ length: 6 }, (_, i) => row(START + i * DAY, DAY - 1_000));
  test.each([
    ['that ends one second before an hour ends', row(START + 3 * DAY, HOUR - 1_000), /that of a 1h candle/],
    ['that ends with an hour', row(START + 3 * DAY, HOUR), /that of a 1h candle/],
    ['off the grid', row(START + 3 * DAY + 6 * HOUR, null), /grid/],
  ])('%s', (_, odd, reason) => {
    const rows = days.with(3, odd);
    expect(judge('24h', rows)).toBeNull();
    expect(quarantined('24h', rows)).toMatchObject([{ reason: expect.stringMatching(reason) }]);
  });
});

describe('hours of a coin that is traded only at midnight', () => {
  const midnights = (end: number | null) => Array.from({ length: 6 }, (_, i) => row(START + i * DAY, end));
  test.each([
    ['one second before the end of the hour', HOUR - 1_000, null],
    ['exactly the end of the hour', HOUR, null],
    ['left out: then nothing tells them from days', null, expect.stringMatching(/24h apart/)],
  ])('are hours by their time_close: %s', (_, end, reason) => {
    expect(judge('1h', midnights(end))).toEqual(reason);
  });
});

test('rows that end early do not count alone: the others show that they are not of a wider interval', () => {
  const rows = Array.from({ length: 48 }, (_, i) => row(START + i * HOUR, i % 12 === 0 ? 10 * 60_000 : HOUR - 1_000));
  expect(judge('1h', rows)).toBeNull();
});

test('an open candle may have the minute of its data where an hour ends', () => {
  const rows = [row(NOW - DAY, 12 * HOUR), row(NOW, HOUR)];
  expect(judge('24h', rows)).toBeNull();
  expect(quarantined('24h', rows)).toEqual([]);
});
