import { testAnyOrder } from './any-order.ts';

testAnyOrder('1h');
