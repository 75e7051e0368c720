/**
 * Three tiers of tests, with the time that each may take alone on two cores:
 *
 * - `npm run check`, a minute: types, lint, format, and the project `pure`: every test that needs no server. Nothing has to be
 *   declared: a test file is pure when none of its imports starts a server (test/support/tiers.ts).
 * - `npm test`, six minutes: `pure`, and the project `whole`: all other files named `x.test.ts`, on a real Postgres and a real Redis.
 * - `npm run test:deep`, 25 minutes: the project `deep`: long and rare cases, in files named `x.deep.test.ts` beside the `x.test.ts`
 *   that has the main cases. What the two share is in `x.ts`.
 *
 * One file: `npx vitest run test/core/chunk.test.ts`; one test of it: the same with `-t 'words of its name'`.
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { testsWithoutServer } from './test/support/tiers.ts';

const PURE = testsWithoutServer(import.meta.dirname);
const DEEP = 'test/**/*.deep.test.ts';
/** The class of machine on which the tests must pass. On a bigger one more workers would only make timings worse. */
const CORES = 2;
/** With a server tests wait for something a good part of their time. CI's machine may be half as fast, and then they wait less. */
const WORKERS = process.env.CI ? CORES : CORES + 1;
const SERVERS = ['test/support/global-setup.ts'];

export default defineConfig({
  test: {
    // Who waits for something waits a minute for it on a busy machine, and a test waits for several things.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: 'pure', include: PURE, isolate: false, maxWorkers: CORES, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: [...PURE, DEEP],
          globalSetup: SERVERS,
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'deep',
          include: [DEEP],
          globalSetup: SERVERS,
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Only by name (`npm run bench`), one file at a time: whatever else runs is in the figures.
        extends: true,
        test: {
          name: 'bench',
          include: ['test/bench/**/*.bench.ts'],
          globalSetup: SERVERS,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
          testTimeout: 30 * 60_000,
          hookTimeout: 10 * 60_000,
        },
      },
    ],
  },
});
