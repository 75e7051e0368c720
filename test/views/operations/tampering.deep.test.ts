/** Of prices, what is changed beside the rows; the rest is in `tampering.test.ts`. */
import { PRICES } from './tampering.ts';
import { OF_PRICES_BESIDE } from './tampering-table.ts';
import { testTampering } from './tampering-tests.ts';

testTampering('prices', PRICES, OF_PRICES_BESIDE, 'and all else');
