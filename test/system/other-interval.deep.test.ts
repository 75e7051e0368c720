import { testFalseAnswers, testOneCoin, useWorld } from './other-interval.ts';

useWorld();
testFalseAnswers('others');
testOneCoin();
