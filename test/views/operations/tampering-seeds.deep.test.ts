import { BOTH } from './tampering.ts';
import { testSeeds } from './tampering-seeds.ts';

testSeeds(1_000, BOTH);
