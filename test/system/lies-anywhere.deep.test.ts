import { testLies } from './lies-anywhere.ts';

testLies(Array.from({ length: 60 }, (_, i) => i + 1));
