import { testDays } from './quarter-days.ts';

testDays('Postgres', ['without a key', 'pro']);
