/** How many requests are sent before each backfill is done. */
import { expect, test } from 'vitest';
import { type QueuedWork, workUntilDone } from '../../../src/ingest/backfill/work-before.ts';

const of = (id: number, left: number, more: Partial<QueuedWork> = {}): QueuedWork => ({
  id,
  left,
  priority: 0,
  isDetached: true,
  ...more,
});
const totals = (sharers: readonly QueuedWork[], workers: number, block = 0) =>
  Object.fromEntries([...workUntilDone(sharers, workers, block)].map(([id, { total }]) => [id, total]));

test('one service takes backfills one after the other', () => {
  expect(totals([of(1, 100), of(2, 50)], 1)).toEqual({ 1: 100, 2: 150 });
});

test('running backfills take turns, and the next one begins when one is done', () => {
  expect(totals([of(1, 100), of(2, 300), of(3, 50)], 2)).toEqual({ 1: 200, 3: 300, 2: 450 });
});

test('the most urgent backfill goes first, whichever is running', () => {
  expect(totals([of(1, 100, { priority: 5 }), of(2, 300), of(3, 50)], 3)).toEqual({ 1: 100, 3: 200, 2: 450 });
});

test('a command has a process of its own', () => {
  expect(totals([of(1, 100), of(2, 100), of(3, 10, { isDetached: false })], 1)).toEqual({ 3: 20, 1: 110, 2: 210 });
});

test('the last chunks of a small backfill stand behind half a block of the others', () => {
  expect(totals([of(1, 1_000), of(2, 10)], 2, 100)).toMatchObject({ 2: 20 + 40 });
  expect(totals([of(1, 1_000), of(2, 500)], 2, 100)).toMatchObject({ 2: 1_000 });
});

test('the result names the other backfills, with their requests', () => {
  expect([...workUntilDone([of(1, 100), of(2, 300)], 2).get(1)!.others]).toEqual([[2, 100]]);
  expect(workUntilDone([], 2).size).toBe(0);
});
