import { testShard } from './seeds.ts';

testShard(0);
