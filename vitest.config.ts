/**
 * Three tiers of tests, with the time each takes alone on two cores:
 *
 * - `npm run check` (at most a minute) runs the project `pure`: every test that needs no server. Nothing has to be declared: a test
 *   file is pure when none of its imports starts a server (test/support/tiers.ts).
 * - `npm test` (at most six minutes) runs the project `whole`: everything else in `x.test.ts`, on a real Postgres and a real Redis.
 * - `npm run test:deep` (at most 25 minutes) runs the project `deep`: the long cases, in files named `x.deep.test.ts` beside the
 *   `x.test.ts` that shows the same promise once.
 *
 * One file: `npx vitest run test/store/coin.test.ts`; one test of it: `… -t 'words of its name'`.
 */
import { defineConfig } from 'vitest/config';
import { testsWithoutServer } from './test/support/tiers.ts';

const PURE = testsWithoutServer(import.meta.dirname);
const DEEP = 'test/**/*.deep.test.ts';
const SERVERS = ['test/support/global-setup.ts'];

export default defineConfig({
  test: {
    // Who waits for something waits a minute for it on a busy machine, and a test waits for several things.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two cores are the class of machine this must pass on: more workers only make timings worse.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'pure', include: PURE, isolate: false } },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: [...PURE, DEEP],
          globalSetup: SERVERS,
          isolate: false,
        },
      },
      { extends: true, test: { name: 'deep', include: [DEEP], globalSetup: SERVERS } },
      {
        // Only by name (`npm run bench`), one file at a time: whatever else runs is in the figures.
        extends: true,
        test: {
          name: 'bench',
          include: ['test/bench/**/*.bench.ts'],
          globalSetup: SERVERS,
          fileParallelism: false,
          testTimeout: 30 * 60_000,
          hookTimeout: 10 * 60_000,
        },
      },
    ],
  },
});
