/**
 * Clocks of the machines that are set by a day while services run: time goes on as before, only what they call it changes. Nothing
 * falls silent for longer than its interval, nothing is lost, and the quota holds.
 */
import { afterEach, test } from 'vitest';
import { JUMPS, jump, world } from './clock-jumps.ts';

afterEach(() => world?.close());

test.each(JUMPS.slice(0, 1))(
  'the clock of %s jumps a day %s: nothing is silent for longer than its interval, nothing is lost',
  { timeout: 420_000 },
  (whose, _how, offs) => jump(whose, offs),
);
