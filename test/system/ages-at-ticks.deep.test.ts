import { testAges } from './ages-at-ticks.ts';

testAges(['few', 'where there are enough requests'], ['many', 'where they are short']);
