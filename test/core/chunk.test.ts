import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chunksNewestFirst, countChunks, countSlots, wholeChunksNewestFirst } from '../../src/core/chunk.ts';
import { INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import { contains, intersect, normalize, type Span, subtract, union } from '../../src/core/span.ts';

const interval: Interval = '1h';
const HOUR = INTERVAL_MS[interval];

/** Gaps of whole slots, as the planner makes them. */
const gaps = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 120 }), fc.integer({ min: 1, max: 20 })), { maxLength: 8 })
  .map((list) => normalize(list.map(([from, length]) => ({ from: from * HOUR, to: (from + length) * HOUR }))));
const limits = fc.integer({ min: 1, max: 30 });

/** The smallest number of windows that touch all slots, computed in the slow and obvious way: slot by slot from the left. */
function fewest(spans: readonly Span[], limit: number): number {
  let count = 0;
  let reach = Number.NEGATIVE_INFINITY;
  for (const span of spans) {
    for (let slot = span.from; slot < span.to; slot += HOUR) {
      if (slot < reach) continue;
      count++;
      reach = slot + limit * HOUR;
    }
  }
  return count;
}

describe('cutting gaps into chunks', () => {
  test('uses the smallest possible number of requests', () => {
    fc.assert(
      fc.property(gaps, limits, (spans, limit) => {
        const chunks = [...chunksNewestFirst(spans, interval, limit)];
        expect(chunks.length).toBe(fewest(spans, limit));
        expect(countChunks(spans, interval, limit)).toBe(chunks.length);
      }),
      { numRuns: 2000 },
    );
  });

  test('covers every missing slot exactly once, in windows no longer than the limit, newest first', () => {
    fc.assert(
      fc.property(gaps, limits, (spans, limit) => {
        const chunks = [...chunksNewestFirst(spans, interval, limit)];
        for (const [i, chunk] of chunks.entries()) {
          expect((chunk.to - chunk.from) / HOUR).toBeLessThanOrEqual(limit);
          if (i > 0) expect(chunk.to).toBeLessThanOrEqual(chunks[i - 1]!.from);
          expect(contains(spans, chunk.from)).toBe(true);
          expect(contains(spans, chunk.to - HOUR)).toBe(true);
        }
        expect(subtract(spans, normalize(chunks))).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  test('fetches two small gaps with one request when they fit into one', () => {
    const two = [
      { from: 0, to: 2 * HOUR },
      { from: 5 * HOUR, to: 6 * HOUR },
    ];
    expect([...chunksNewestFirst(two, interval, 6)]).toEqual([{ from: 0, to: 6 * HOUR }]);
    expect([...chunksNewestFirst(two, interval, 5)]).toEqual([
      { from: HOUR, to: 6 * HOUR },
      { from: 0, to: HOUR },
    ]);
  });

  test('is lazy: the first chunk of ten years of 5-minute candles does not compute the others', () => {
    const years = [{ from: 0, to: 3650 * 24 * HOUR }];
    const first = chunksNewestFirst(years, '5m', 366).next();
    expect(first.value).toEqual({ from: 3650 * 24 * HOUR - 366 * INTERVAL_MS['5m'], to: 3650 * 24 * HOUR });
    expect(countChunks(years, '5m', 366)).toBe(Math.ceil((3650 * 288) / 366));
  });
});

describe('span arithmetic', () => {
  const spans = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 10 })), { maxLength: 8 })
    .map((list) => normalize(list.map(([from, length]) => ({ from, to: from + length }))));

  test('agrees with arithmetic on sets of points', () => {
    fc.assert(
      fc.property(spans, spans, (a, b) => {
        const pointsOf = (holds: (at: number) => boolean) => Array.from({ length: 62 }, (_, at) => at).filter(holds);
        const inA = (at: number) => contains(a, at);
        const inB = (at: number) => contains(b, at);
        const [both, common, rest] = [union(a, b), intersect(a, b), subtract(a, b)];
        expect(pointsOf((at) => contains(both, at))).toEqual(pointsOf((at) => inA(at) || inB(at)));
        expect(pointsOf((at) => contains(common, at))).toEqual(pointsOf((at) => inA(at) && inB(at)));
        expect(pointsOf((at) => contains(rest, at))).toEqual(pointsOf((at) => inA(at) && !inB(at)));
      }),
      { numRuns: 1000 },
    );
  });

  test('counts the slots whose open time lies inside a span', () => {
    expect(countSlots([{ from: 1, to: HOUR + 1 }], interval)).toBe(1);
    expect(countSlots([{ from: 0, to: 3 * HOUR }], interval)).toBe(3);
    expect(countSlots([{ from: 1, to: 2 }], interval)).toBe(0);
  });
});

describe('chunks that hold stretches whole', () => {
  /** Holes with one slot on either side, as `confirm_holes` requests them. Neighbours share a slot. */
  const stretches = gaps.map((holes) => holes.map(({ from, to }) => ({ from: from - HOUR, to: to + HOUR })));

  /** The smallest number of windows that hold all of them, counted from the left. The code goes in the other direction. */
  function fewestWhole(spans: readonly Span[], limit: number): number {
    let count = 0;
    let reach = Number.NEGATIVE_INFINITY;
    for (const span of spans) {
      if (span.to - span.from > limit * HOUR || span.to <= reach) continue;
      count++;
      reach = span.from + limit * HOUR;
    }
    return count;
  }

  test('puts each stretch whole into one chunk, makes the fewest chunks, and requests no more than needed', () => {
    fc.assert(
      fc.property(stretches, limits, (spans, limit) => {
        const chunks = wholeChunksNewestFirst(spans, interval, limit);
        expect(chunks.length).toBe(fewestWhole(spans, limit));
        for (const { from, to } of spans.filter((span) => span.to - span.from <= limit * HOUR))
          expect(chunks.some((chunk) => chunk.from <= from && to <= chunk.to)).toBe(true);
        for (const [i, { from, to }] of chunks.entries()) {
          expect((to - from) / HOUR).toBeLessThanOrEqual(limit);
          expect(spans.some((span) => span.from === from) && spans.some((span) => span.to === to)).toBe(true);
          if (i > 0) expect(from).toBeLessThan(chunks[i - 1]!.from);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('leaves out only the stretches that no request can hold', () => {
    const long = { from: 0, to: 11 * HOUR };
    const short = { from: 20 * HOUR, to: 23 * HOUR };
    expect(wholeChunksNewestFirst([long, short], interval, 10)).toEqual([short]);
  });
});
