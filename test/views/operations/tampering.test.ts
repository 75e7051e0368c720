/** Changes by hand, of candles and of prices; the rest is in `tampering.deep.test.ts`. */
import { CANDLES, PRICES } from './tampering.ts';
import { ASTRAY, OF_CANDLES, OF_PRICES } from './tampering-table.ts';
import { testTampering } from './tampering-tests.ts';

testTampering('candles', CANDLES, OF_CANDLES, 'and all else');
testTampering('prices', PRICES, [...OF_PRICES, ...ASTRAY], 'alone');
