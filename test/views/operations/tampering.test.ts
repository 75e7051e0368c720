import { CANDLES, PRICES } from './tampering.ts';
import { ASTRAY, OF_PRICES, TABLE } from './tampering-table.ts';
import { testTampering } from './tampering-tests.ts';

testTampering('candles', CANDLES, TABLE, 'and all else');
testTampering('prices', PRICES, [...OF_PRICES, ...ASTRAY], 'alone');
