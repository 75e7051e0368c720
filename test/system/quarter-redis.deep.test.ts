import { testDays } from './quarter-days.ts';

testDays('Redis', ['free', 'enterprise']);
