import { testAnyOrder } from './any-order.ts';

testAnyOrder('1h', 60);
testAnyOrder('prices-1h', 60);
