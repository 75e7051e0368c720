import { testEchoes } from './key-echoed.ts';

testEchoes('refuses the key');
