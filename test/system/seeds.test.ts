import { expect, test } from 'vitest';
import { SEED_FAULTS } from './scenario.ts';
import { testSeeds } from './seeds.ts';

/** Between them they meet every kind of fault, on both engines of the queue. */
const FEW = [3, 8, 12, 15, 20, 26, 30, 33];

const injected = new Set<string>();
testSeeds(FEW, ({ faults }) => {
  for (const [name, times] of Object.entries(faults)) if (times > 0) injected.add(name);
});

test('these few seeds meet every kind of fault', () => {
  expect([...injected]).toEqual(expect.arrayContaining(SEED_FAULTS));
});
