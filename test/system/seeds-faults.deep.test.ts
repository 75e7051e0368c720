import { expect, test } from 'vitest';
import { SEED_FAULTS } from './scenario.ts';
import { FAULTY, testSeeds } from './seeds.ts';

const injected = new Set<string>();
testSeeds(FAULTY, ({ faults }) => {
  for (const [name, times] of Object.entries(faults)) if (times > 0) injected.add(name);
});

test('these few seeds meet every kind of fault', () => {
  expect(SEED_FAULTS.filter((name) => !injected.has(name))).toEqual([]);
});
