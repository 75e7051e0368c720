import { testSeeds } from './seeds.ts';

/** A handful, on both engines of the queue. All of them, and that they meet every kind of fault, are in the deep tier. */
testSeeds([1, 5, 8, 10]);
