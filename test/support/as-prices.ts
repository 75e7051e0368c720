/** The price series that stands for candles of an interval, in tests of what holds for both. */
import { type CandleInterval, type PriceInterval, priceInterval } from '../../src/core/interval.ts';

export function asPrices(interval: CandleInterval): PriceInterval {
  return priceInterval(interval === '24h' ? '1d' : interval);
}
