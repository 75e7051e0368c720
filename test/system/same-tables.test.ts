import { testSameTables } from './same-tables.ts';

testSameTables('Postgres');
