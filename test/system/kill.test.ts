import { testKills } from './kill.ts';

testKills('Postgres', 'a few candles');
