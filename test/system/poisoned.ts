/** An upstream that fails for one coin, or for all. */
import { DAY } from '../../src/core/interval.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { WorldOptions } from '../support/world.ts';

export const POISONED = 'btc-bitcoin';
export const HEALTHY = ['eth-ethereum', 'ltc-litecoin'];
export const WORK = { coins: [POISONED, ...HEALTHY], from: TODAY - 603 * DAY, to: TODAY - 3 * DAY, concurrency: 4 };
export const MINUTE = 60_000;
/** Attempts of a chunk. */
export const ATTEMPTS = 8;

export let world: ScriptedWorld['world'];
export let upstream: ScriptedWorld['upstream'];
export async function make(options: WorldOptions = {}): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}
export const askedOf = (coin: string) => upstream.ohlcv().filter((asked) => asked.coin === coin);
/** Coins that were requested although nothing is wanted of them, to distinguish a broken coin from an outage. */
export const others = () =>
  upstream.ohlcv().flatMap(({ path, coin }) => (path.endsWith('/ohlcv/latest') ? [coin!] : []));
export const missing = async () => {
  const rows = await world.database.sql<{ coinId: string; reason: string }[]>`
    select distinct coin_id, reason from market.gaps order by coin_id`;
  return rows.map((row) => `${row.coinId} ${row.reason}`);
};
