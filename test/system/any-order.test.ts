import { testAnyOrder } from './any-order.ts';

// The first cases of those in `any-order.deep.test.ts`.
testAnyOrder('1h', 20);
