import { testAnyOrder } from './any-order.ts';

testAnyOrder('prices-1h');
