import { testSameTables } from './same-tables.ts';

testSameTables('Redis', 1);
