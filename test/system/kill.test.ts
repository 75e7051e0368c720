import { testKills } from './kill.ts';

testKills('Postgres', 'candles');
