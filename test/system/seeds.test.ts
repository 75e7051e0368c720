import { IN_BRIEF, testSeeds } from './seeds.ts';

/** Twenty. The others, and that they meet every kind of fault, are in the deep tier. */
testSeeds(IN_BRIEF);
