import { expect, test } from 'vitest';
import { SEED_FAULTS } from './scenario.ts';
import { testSeeds } from './seeds.ts';

/** Between them they meet every kind of fault, on both engines of the queue. */
const FEW = [1, 3, 5, 8, 9, 10, 12, 14, 15, 19, 20, 24, 26, 27, 29, 30, 33, 35, 36, 38];

const injected = new Set<string>();
testSeeds(FEW, ({ faults }) => {
  for (const [name, times] of Object.entries(faults)) if (times > 0) injected.add(name);
});

test('these few seeds meet every kind of fault', () => {
  expect(SEED_FAULTS.filter((name) => !injected.has(name))).toEqual([]);
});
