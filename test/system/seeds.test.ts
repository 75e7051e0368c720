import { IN_BRIEF, testSeeds } from './seeds.ts';

/** Twenty. All of them, and that they meet every kind of fault, are in the deep tier. */
testSeeds(IN_BRIEF);
