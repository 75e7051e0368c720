import { testReordered } from './reordered.ts';

testReordered(['prices-1h']);
