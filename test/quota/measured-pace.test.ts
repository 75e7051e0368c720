/** What is measured from the requests of backfills: the rate without outages and waits, and the requests for each chunk. */
import { expect, test } from 'vitest';
import { measurePace } from '../../src/quota/measured-pace.ts';

const SECOND = 1_000;
const sent = (count: number, gapMs: number, from = 0, isLast: (i: number) => boolean = () => true) =>
  Array.from({ length: count }, (_, i) => ({ sentAt: from + i * gapMs, isLast: isLast(i) }));

test('a few requests are not enough to measure a rate', () => {
  expect(measurePace(sent(30, 200), 100)).toBeNull();
  expect(measurePace([], 0)).toBeNull();
});

test('the measured rate is that of the requests sent, and never higher than the plan allows', () => {
  expect(measurePace(sent(200, 400), 100)).toMatchObject({ gapMs: 400, perChunk: 1, spread: 0.03 });
  expect(measurePace(sent(200, 90), 100)).toMatchObject({ gapMs: 100 });
});

test('waits and outages do not count as time in the measured rate', () => {
  const before = sent(100, 200);
  const outage = sent(20, 5 * SECOND, 30 * SECOND, () => false);
  const after = sent(100, 200, 3_600 * SECOND);
  const pace = measurePace([...after, ...outage, ...before], 100)!;
  expect(pace.gapMs).toBeCloseTo(200, -1);
  expect(pace.perChunk).toBe(1);
});

test('failures outside an outage count as additional requests for a chunk', () => {
  const pace = measurePace(
    sent(300, 200, 0, (i) => i % 4 !== 0),
    100,
  )!;
  expect(pace.perChunk).toBeCloseTo(4 / 3, 1);
  expect(pace.gapMs).toBe(200);
});

test('a rate that varies is measured as less certain', () => {
  const even = measurePace(sent(200, 200), 0)!;
  const uneven = measurePace([...sent(100, 100), ...sent(100, 300, 20 * SECOND)], 0)!;
  expect(uneven.spread).toBeGreaterThan(even.spread);
});
