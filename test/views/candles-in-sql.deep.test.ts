import { testCandlesInSql } from './candles-in-sql.ts';

testCandlesInSql(25);
