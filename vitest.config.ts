import { defineConfig } from 'vitest/config';

/** Tests that need no server; everything else gets the Postgres that global-setup.ts finds or starts. */
const PURE = ['test/*.test.ts', 'test/core/**/*.test.ts', 'test/contract/**/*.test.ts'];

export default defineConfig({
  test: {
    // Who waits for something waits a minute for it on a busy machine, and a test waits for several things.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two cores are the class of machine this must pass on: more workers only make timings worse.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'pure', include: PURE } },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: PURE,
          globalSetup: ['test/support/global-setup.ts'],
        },
      },
      {
        // Only by name (`npm run bench`), one file at a time: whatever else runs is in the figures.
        extends: true,
        test: {
          name: 'bench',
          include: ['test/bench/**/*.bench.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          fileParallelism: false,
          testTimeout: 30 * 60_000,
          hookTimeout: 10 * 60_000,
        },
      },
    ],
  },
});
