import { testDamages, useWorld } from './uncover.ts';

useWorld();
testDamages([1, 2, 3, 4, 5]);
