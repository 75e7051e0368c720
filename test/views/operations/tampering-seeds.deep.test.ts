import { BOTH, CANDLES } from './tampering.ts';
import { testSeeds } from './tampering-seeds.ts';

/** All of candles; prices go through the same checks, and each kind of change is tried several times on them. */
const SEEDS = 1_000;
const SEEDS_OF_PRICES = 300;

for (const one of BOTH) testSeeds(one[1] === CANDLES ? SEEDS : SEEDS_OF_PRICES, [one]);
