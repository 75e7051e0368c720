import { testFalseAnswers, useWorld } from './other-interval.ts';

useWorld();
testFalseAnswers('others');
