import { testAges } from './ages-at-ticks.ts';

testAges(['few', 'where they are short']);
