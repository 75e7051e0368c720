/** What happens to services in a quarter (`quarter.ts`): restarts, outages of everything they depend on, and clocks that are set. */
import { systemClock } from '../../src/clock.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/interval.ts';
import type { ServiceWorld } from '../support/service-world.ts';

type Draws = {
  readonly start: () => Promise<unknown>;
  readonly chance: (share: number) => boolean;
  readonly pick: <T>(list: readonly T[]) => T;
  readonly between: (least: number, most: number) => number;
  readonly hasRedis: boolean;
};

export function createHappenings(
  world: ServiceWorld,
  { start, chance, pick, between, hasRedis }: Draws,
): Readonly<Record<string, () => Promise<unknown>>> {
  /** Time to make connections again, which needs the machine's clock. */
  const recover = async () => {
    for (let i = 0; i < 25; i++) {
      await world.advance(4_000);
      await systemClock.sleep(40);
    }
  };
  const away = async (cut: () => void) => {
    cut();
    for (let i = between(3, 9); i > 0; i--) await world.advance(25_000);
    world.mend();
    await recover();
  };
  return {
    'stopped and started again': async () => {
      await world.services()[0]!.stop();
      if (chance(0.5)) await world.advance(between(1, 6) * HOUR);
      await start();
    },
    killed: async () => {
      world.services()[0]!.kill();
      await start();
      // Work of the dead service counts as in progress for a while.
      for (let i = 0; i < 8; i++) await world.advance(15_000);
      await recover();
    },
    'a second instance': async () => (world.services().length < 2 ? start() : world.services()[0]!.stop()),
    'upstream away': async () => {
      world.upstream = pick(['down', 'broken']);
      await world.advance(10 * MINUTE);
      await world.advance(between(1, 9) * HOUR);
      world.upstream = 'up';
      // The longest hold of an outage, and the longest pause of a schedule that failed again and again.
      for (let i = 0; i < 8; i++) await world.advance(10 * MINUTE);
    },
    'database away': () => away(world.cutDatabase),
    ...(hasRedis ? { 'Redis away': () => away(world.cutRedis) } : {}),
    'queues lost': async () => {
      await world.wipeQueues();
      for (let i = 0; i < 6; i++) await world.advance(11_000);
    },
    ...Object.fromEntries(
      [DAY, -DAY].map((off) => [
        `a clock set ${off > 0 ? 'forward' : 'back'} by a day`,
        async () => {
          const { clock } = pick(world.services());
          clock.setOff(off);
          for (let i = 0; i < 3; i++) await world.advance(11_000);
          await world.advance(between(1, 5) * HOUR);
          clock.setOff(0);
          for (let i = 0; i < 3; i++) await world.advance(11_000);
        },
      ]),
    ),
  };
}
