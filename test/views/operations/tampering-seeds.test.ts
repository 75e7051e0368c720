import { testSeeds } from './tampering-seeds.ts';

testSeeds(40);
