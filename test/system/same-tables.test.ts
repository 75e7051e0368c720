import { testSameTables } from './same-tables.ts';

testSameTables('Postgres', 1 / 3);
