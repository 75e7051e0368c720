/** Spreads the seeds of the whole-system property over test files, so that they use every core. */
import { describe, test } from 'vitest';
import type { QueueEngine } from '../../src/ingest/queue/queue-engine.ts';
import { testRedisUrl } from '../support/database.ts';
import { runSeed } from './scenario.ts';

/** `SEED=17` runs that one alone; `SEEDS=1000` runs so many. Every fifth has its queue on Redis, where there is one. */
const only = process.env.SEED === undefined ? null : Number(process.env.SEED);
const count = Number(process.env.SEEDS ?? 200);
export const SHARDS = 4;

function engineOf(seed: number): QueueEngine | undefined {
  const url = seed % 5 === 0 ? testRedisUrl() : null;
  return url === null ? undefined : { kind: 'redis', url };
}

export function testSeeds(shard: number): void {
  const seeds =
    only !== null
      ? shard === 0
        ? [only]
        : []
      : Array.from({ length: count }, (_, i) => i + 1).filter((seed) => seed % SHARDS === shard);
  describe.skipIf(seeds.length === 0)(
    'after any sequence of faults, restarts and double scheduling, what is covered is the market',
    () => {
      test.each(seeds)('seed %i', { timeout: 120_000 }, async (seed) => {
        try {
          const { requests, faults, runs } = await runSeed(seed, engineOf(seed));
          if (only !== null) console.info(`seed ${seed}: ${requests} requests, ${faults} faults, ${runs} runs`);
        } catch (error) {
          console.error(`replay this failure with: SEED=${seed} npx vitest run test/system/seeds`);
          throw error;
        }
      });
    },
  );
}
