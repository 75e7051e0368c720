import { testReordered } from './reordered.ts';

testReordered(['1h']);
