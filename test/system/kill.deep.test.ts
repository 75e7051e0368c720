import { testKills } from './kill.ts';

testKills('Redis', 'candles');
testKills('Postgres', 'candles');
// They go through the same queue.
testKills('Postgres', 'prices');
