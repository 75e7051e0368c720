import { testTwoRuns } from './two-runs.ts';

testTwoRuns(40);
