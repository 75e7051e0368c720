import { testAges } from './ages-at-ticks.ts';

testAges('many', ['where they are short']);
