import { testServiceSeeds } from './service-seeds.ts';

testServiceSeeds('Postgres', [4]);
