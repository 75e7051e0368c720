import { testTwoRuns } from './two-runs.ts';

testTwoRuns(null);
