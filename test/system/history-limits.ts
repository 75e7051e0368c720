/** A world whose upstream has a history limit, documented or not. */
import { DAY } from '../../src/core/interval.ts';
import { createScripted } from '../support/scripted.ts';
import { createWorld, type World, type WorldOptions } from '../support/world.ts';

export const NOW = Date.UTC(2026, 10, 1, 12);
export const TODAY = Math.floor(NOW / DAY) * DAY;
export const COINS = ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'];
export const YEARS = { coins: COINS, from: TODAY - 1_500 * DAY, to: TODAY - 3 * DAY, concurrency: 4 };
export const NO_WALL_OF_OURS = { plan: 'enterprise' } as const;

export let world: World;
export let upstream: ReturnType<typeof createScripted>;

export async function make(options: WorldOptions): Promise<void> {
  upstream = createScripted();
  // What needs a second opinion waits for seconds of the world's clock, up to 75.
  world = await createWorld({ startAt: NOW, speed: 20, fetch: upstream.fetch, ...options });
}

/** An upstream whose history limit lies this many days back, whatever its documents say. */
export const wallAt = (days: number | null): Partial<WorldOptions> => ({
  simulator: { seed: 3, coins: 10, unlimited: true, limits: { overrides: { historyDepthMs: days && days * DAY } } },
});

export const refusals = () => upstream.ohlcv().filter((asked) => asked.status === 402).length;
export const reasons = async () => {
  const rows = await world.database.sql<{ reason: string; slots: number }[]>`
    select reason, sum(slots)::int as slots from market.gaps group by reason order by reason`;
  return Object.fromEntries(rows.map((row) => [row.reason, row.slots]));
};
