/** A made-up world: its coins by index and by id. */
import type { Quote } from '../../core/candle.ts';
import type { MadeUpSeries } from './made-up-candle.ts';
import { MAX_COINS, type MadeUpCoin, madeUpCoin } from './made-up-coin.ts';

/** Everything about the market that does not depend on the time of day; share one among markets with different clocks. */
export type MadeUpWorld = {
  readonly seed: number;
  readonly coins: readonly MadeUpCoin[];
  find(coinId: string): MadeUpCoin | undefined;
  series(coin: MadeUpCoin, quote: Quote): MadeUpSeries;
};

/** Throws a `RangeError` unless `coins` is a whole number from 1 to 65,000. */
export function createMadeUpWorld({ seed, coins: count }: { seed: number; coins: number }): MadeUpWorld {
  if (!Number.isInteger(count) || count < 1 || count > MAX_COINS) {
    throw new RangeError(`coins must be a whole number from 1 to ${MAX_COINS}, got ${count}`);
  }
  const coins = Array.from({ length: count }, (_, index) => madeUpCoin(seed, index));
  const byId = new Map(coins.map((coin) => [coin.id, coin]));
  return {
    seed,
    coins,
    find: (coinId) => byId.get(coinId),
    series: (coin, quote) => ({ coin, quote, reference: coins[0]! }),
  };
}
