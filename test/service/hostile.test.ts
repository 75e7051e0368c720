import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { frozenClock } from './conformance.ts';
import { describeHostile } from './hostile.ts';

const clock = frozenClock(Date.UTC(2024, 5, 1, 12, 3, 20));
const world = createMadeUpWorld({ seed: 1, coins: 30 });

describeHostile('the made-up market', async () => ({
  data: createMadeUpMarket({ world, clock }),
  clock,
  coinId: 'btc-bitcoin',
}));
