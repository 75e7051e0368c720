/** Changes beside the rows of prices, and changes of many series for both; the rest is in `tampering.test.ts`. */
import { CANDLES, PRICES } from './tampering.ts';
import { OF_MANY, OF_PRICES_BESIDE } from './tampering-table.ts';
import { testTampering } from './tampering-tests.ts';

testTampering('candles', CANDLES, OF_MANY, 'alone');
testTampering('prices', PRICES, [...OF_MANY, ...OF_PRICES_BESIDE], 'and all else');
