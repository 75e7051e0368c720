import { testAnyOrder } from './any-order.ts';

// The first cases of `any-order.deep.test.ts`.
testAnyOrder('1h', 20);
