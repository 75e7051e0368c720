/** Cuts gaps into the fewest chunks, each small enough for one request. */
import { ceilToGrid, floorToGrid, INTERVAL_MS, type Interval } from './interval.ts';
import type { Span, Spans } from './span.ts';

/**
 * The fewest windows of at most `limit` slots that together touch every slot of `gaps`, newest first.
 *
 * A greedy choice from one end is optimal for covering points with windows of equal length. Starting at the newest end gives the
 * newest data first, and only the oldest window is partial. A window may include covered slots between two gaps: two gaps
 * that fit into one request cost one request. A window begins and ends with a missing slot, so it requests no more than needed.
 * The generator is lazy: a caller that takes the next few windows does not pay for the others.
 */
export function* chunksNewestFirst(gaps: Spans, interval: Interval, limit: number): Generator<Span> {
  const width = INTERVAL_MS[interval];
  let i = gaps.length - 1;
  // The chunks so far contain everything at or after `done`.
  let done = Number.POSITIVE_INFINITY;
  while (i >= 0) {
    const to = ceilToGrid(Math.min(gaps[i]!.to, done), interval);
    const reach = to - limit * width;
    let from = to - width;
    while (i >= 0) {
      const start = floorToGrid(gaps[i]!.from, interval);
      if (start >= to) {
        i--;
        continue;
      }
      if (gaps[i]!.to <= reach) break;
      from = Math.max(start, reach);
      if (start < reach) break;
      i--;
    }
    yield { from, to };
    done = from;
    while (i >= 0 && gaps[i]!.from >= done) i--;
  }
}

/** The number of requests that `gaps` cost: as many as `chunksNewestFirst` yields, counted in one pass without allocation. */
export function countChunks(gaps: Spans, interval: Interval, limit: number): number {
  const window = limit * INTERVAL_MS[interval];
  let count = 0;
  let done = Number.POSITIVE_INFINITY;
  for (let i = gaps.length - 1; i >= 0; i--) {
    const from = floorToGrid(gaps[i]!.from, interval);
    const to = Math.min(ceilToGrid(gaps[i]!.to, interval), done);
    if (to <= from) continue;
    const windows = Math.ceil((to - from) / window);
    count += windows;
    done = to - windows * window;
  }
  return count;
}

/**
 * The fewest windows of at most `limit` slots in which each of `stretches` lies completely; newest first. For slots that an answer proves
 * only together with the slots around them. `stretches` ascend by both ends and may overlap. Stretches longer than a window are skipped.
 */
export function wholeChunksNewestFirst(stretches: readonly Span[], interval: Interval, limit: number): Span[] {
  const window = limit * INTERVAL_MS[interval];
  const chunks: Span[] = [];
  for (const { from, to } of stretches.toReversed()) {
    if (to - from > window) continue;
    const last = chunks.at(-1);
    if (last !== undefined && last.to - from <= window) chunks[chunks.length - 1] = { from, to: last.to };
    else chunks.push({ from, to });
  }
  return chunks;
}

/** The number of slots of the grid that open in `spans`. */
export function countSlots(spans: Spans, interval: Interval): number {
  let count = 0;
  for (const span of spans) {
    count += Math.max(0, (ceilToGrid(span.to, interval) - ceilToGrid(span.from, interval)) / INTERVAL_MS[interval]);
  }
  return count;
}
