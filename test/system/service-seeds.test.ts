import { testServiceSeeds } from './service-seeds.ts';

testServiceSeeds('Postgres', [1]);
testServiceSeeds('Redis', [2]);
