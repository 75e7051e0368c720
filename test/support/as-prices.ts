/** The price interval that replaces a candle interval in tests that run for both. */
import { type CandleInterval, type PriceInterval, priceInterval } from '../../src/core/interval.ts';

export function asPrices(interval: CandleInterval): PriceInterval {
  return priceInterval(interval === '24h' ? '1d' : interval);
}
