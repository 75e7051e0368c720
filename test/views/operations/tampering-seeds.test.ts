/** Random changes of candles; all of them, and those of prices, are in `tampering-seeds.deep.test.ts`. */
import { BOTH, CANDLES } from './tampering.ts';
import { testSeeds } from './tampering-seeds.ts';

testSeeds(
  40,
  BOTH.filter(([, kept]) => kept === CANDLES),
);
