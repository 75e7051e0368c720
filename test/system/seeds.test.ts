import { IN_BRIEF, testSeeds } from './seeds.ts';

/** Twenty seeds. All of them, and the check that they meet every kind of fault, are in the deep tests. */
testSeeds(IN_BRIEF);
