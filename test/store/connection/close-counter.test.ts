/** Which attempts to connect fail because postgres.js did not report a close. */
import { expect, test } from 'vitest';
import { createCloseCounter } from '../../../src/store/connection/postgres-js-patches.ts';

/** What the next attempts must do. */
function attempts(counter: ReturnType<typeof createCloseCounter>, count: number): boolean[] {
  return Array.from({ length: count }, () => counter.mustFail());
}

test('one attempt fails for each close that is not reported, and the next ones do not', () => {
  const counter = createCloseCounter();
  expect(attempts(counter, 2)).toEqual([false, false]);
  for (let n = 0; n < 3; n++) counter.closed();
  expect(attempts(counter, 5)).toEqual([true, true, true, false, false]);
  counter.closed();
  expect(attempts(counter, 2)).toEqual([true, false]);
});

test('no attempt fails for a close that is reported, also when many are', () => {
  const counter = createCloseCounter();
  for (let n = 0; n < 100; n++) {
    counter.closed();
    counter.reported();
    expect(counter.mustFail()).toBe(false);
  }
});

test('a close that is reported late costs one attempt, and hides no later close', () => {
  const counter = createCloseCounter();
  counter.closed();
  expect(attempts(counter, 2)).toEqual([true, false]);
  counter.reported();
  expect(attempts(counter, 2)).toEqual([false, false]);
  counter.closed();
  expect(attempts(counter, 2)).toEqual([true, false]);
});
