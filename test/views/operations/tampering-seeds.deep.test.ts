import { testSeeds } from './tampering-seeds.ts';

testSeeds(1_000);
