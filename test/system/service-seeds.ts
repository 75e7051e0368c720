/** The seeds of the services: one in `npm test`, all of them in `npm run test:deep`. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/redis-server.ts';
import { runServiceSeed } from './service-scenario.ts';

/** `SEED=17` runs only that one, on both engines. `SERVICE_SEEDS=100` runs so many on each. Each takes half a minute or a little more. */
const only = process.env.SEED === undefined ? null : Number(process.env.SEED);
const count = Number(process.env.SERVICE_SEEDS ?? 5);

const first = await startOwnRedis();
await first?.kill();

/** All of them, unless `few` is given. */
export function testServiceSeeds(engine: 'Postgres' | 'Redis', few?: readonly number[]): void {
  const all = only !== null ? [only] : Array.from({ length: count }, (_, i) => i + 1);
  const seeds = few ?? all;
  describe.skipIf(engine === 'Redis' && first === null)(
    `with services that are restarted, killed and disconnected, their queues on ${engine}, covered spans equal the market`,
    () => {
      let redis: OwnRedis | null = null;
      beforeAll(async () => {
        if (engine === 'Redis') redis = await startOwnRedis();
      });
      afterAll(() => redis?.kill());
      test.each(seeds)('seed %i', { timeout: 240_000 }, async (seed) => {
        try {
          const { requests, faults, days } = await runServiceSeed(seed, redis);
          if (only !== null)
            console.info(`seed ${seed}: ${requests} requests, ${faults} faults, ${days.toFixed(1)} days`);
        } catch (error) {
          console.error(
            `replay this failure with: SEED=${seed} npx vitest run --project deep test/system/service-seeds-${engine.toLowerCase()}`,
          );
          throw error;
        }
      });
    },
  );
}
