import { testAges } from './ages-at-ticks.ts';

testAges('few');
