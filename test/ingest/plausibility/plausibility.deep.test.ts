/** Refreshes of a few slots of the simulator's calm markets; those of one slot are in `plausibility.test.ts`. */
import { describe } from 'vitest';
import { testMadeUp } from './plausibility.ts';
import { REFRESHES } from './recorded/answers.ts';

describe.each(REFRESHES.filter(([size]) => size > 1))('answers of %i slots, %s', (size, order) =>
  testMadeUp(size, order),
);
