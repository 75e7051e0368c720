/** A service whose upstream gives no usable answer at the first start; the rest is in `account.test.ts`. */
import { testFirstStart, useWorld } from './account.ts';

useWorld();
testFirstStart('broken');
