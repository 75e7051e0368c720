import { testFalseAnswers, testOtherAnswers, useWorld } from './other-interval.ts';

useWorld();
testFalseAnswers('main');
testOtherAnswers();
