/** The seeds of the whole-system property: twenty in `npm test`, all 200 in `npm run test:deep`. */
import { describe, test } from 'vitest';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { testRedisUrl } from '../support/database.ts';
import { runSeed, type SeedCounts } from './scenario.ts';

/** `SEED=17` runs only that one. `SEEDS=1000` runs so many. Every fifth has its queue on Redis, if there is one. */
const only = process.env.SEED === undefined ? null : Number(process.env.SEED);
const count = Number(process.env.SEEDS ?? 200);
/** Together they meet every kind of fault, on both engines of the queue. `seeds-faults.deep.test.ts` runs these. */
export const FAULTY = [1, 3, 5, 8, 9, 10, 12, 14, 15, 19, 20, 24, 26, 27, 29, 30, 33, 35, 36, 38];
/** Run in `npm test`, on both engines: they meet many faults with few requests. */
export const IN_BRIEF = [4, 23, 25, 28, 53, 56, 59, 84, 88, 99, 111, 140, 145, 146, 160, 161, 174, 180, 188, 200];
/** The other seeds are spread over so many files, which use every core. */
const SHARDS = 4;

function engineOf(seed: number): QueueEngine | undefined {
  const url = seed % 5 === 0 ? testRedisUrl() : null;
  return url === null ? undefined : { kind: 'redis', url };
}

/** One of the four files that share the other seeds. */
export function testShard(shard: number): void {
  if (only !== null) testSeeds(shard === 0 ? [only] : []);
  else
    testSeeds(
      Array.from({ length: count }, (_, i) => i + 1).filter(
        (seed) => seed % SHARDS === shard && !FAULTY.includes(seed),
      ),
    );
}

export function testSeeds(seeds: readonly number[], onCounts?: (counts: SeedCounts) => void): void {
  describe.skipIf(seeds.length === 0)(
    'after any sequence of faults, lies told once, restarts and double scheduling, covered spans equal the market',
    () => {
      test.each(seeds)('seed %i', async (seed) => {
        try {
          const counts = await runSeed(seed, engineOf(seed));
          onCounts?.(counts);
          const { requests, faults, runs } = counts;
          const injected = Object.values(faults).reduce((sum, n) => sum + n, 0);
          if (only !== null) console.info(`seed ${seed}: ${requests} requests, ${injected} faults, ${runs} runs`);
        } catch (error) {
          console.error(`replay this failure with: SEED=${seed} npx vitest run --project deep test/system/seeds`);
          throw error;
        }
      });
    },
  );
}
