/** Answers about the simulator's calm markets. */
import { test } from 'vitest';
import type { Candle } from '../../../src/core/candle.ts';
import { type CandleInterval, INTERVAL_MS, INTERVALS } from '../../../src/core/interval.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { frozenClock } from '../../service/conformance.ts';
import { expectFew, implausibleOf } from './recorded/answers.ts';

const NOW = Date.UTC(2026, 9, 20);
/** Days and hours have the most coins, because they take little time. Each answer of a shorter interval is compared with a whole day of rows. */
const COINS = { '5m': 20, '15m': 15, '30m': 15, '1h': 60, '6h': 15, '12h': 15, '24h': 60 };
/** Of each coin of the made-up market. */
async function madeUpCandles(interval: CandleInterval): Promise<readonly (readonly Candle[])[]> {
  const market = createMadeUpMarket({
    world: createMadeUpWorld({ seed: 7, coins: COINS[interval] }),
    clock: frozenClock(NOW),
  });
  const from = NOW - 3_660 * INTERVAL_MS[interval];
  const answers = (await market.coins()).map(({ id }) =>
    market.ohlcv({ coinId: id, quote: 'usd', interval, from, to: NOW, limit: 5_000 }),
  );
  const all = (await Promise.all(answers)) as unknown as readonly (readonly Candle[])[];
  return all.filter((candles) => candles.length > 0);
}
const madeUp = new Map<CandleInterval, readonly (readonly Candle[])[]>();

/** Few answers of this many slots would need a second opinion, for each interval. */
export function testMadeUp(size: number, order: 'newest first' | 'oldest first'): void {
  test.each(INTERVALS)('the made-up market is plausible: %s', async (interval) => {
    const series = madeUp.get(interval) ?? (await madeUpCandles(interval));
    madeUp.set(interval, series);
    expectFew(
      interval,
      series.map((candles) => implausibleOf(interval, candles.slice(size < 30 ? -50 * size - 300 : 0), size, order)),
    );
  });
}
