/** Of prices, what is changed beside the rows; the rest is in `tampering.test.ts`. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
import { createWarehouse, inWords, PRICES, slot, verifiedAfter } from './tampering.ts';
import { OF_PRICES_BESIDE } from './tampering-table.ts';

let database: TestDatabase;
let [a, b] = [0, 0];
beforeAll(async () => {
  ({ database, a, b } = await createWarehouse(PRICES));
});
afterAll(() => database?.drop());

test.each(OF_PRICES_BESIDE)('verify finds, and mends: %s', async (_, damage, days) => {
  const spoken = inWords(damage, PRICES).replaceAll(':A', `${a}`).replaceAll(':B', `${b}`);
  const { proofs, all, unmended } = await verifiedAfter(database, spoken);
  expect(all).not.toEqual([]);
  expect(unmended).toEqual([]);
  if (days.length > 0) expect(proofs.flatMap((proof) => proof.stretches)).toEqual(days.map(slot));
});
