/** The parameters of a request for candles or for prices. */
import type { Instant } from '../../clock.ts';
import { parseOhlcvParameters, parseTickerHistoryParameters } from '../../contract/interface/endpoint-parameters.ts';
import { INTERVAL_MS, PRICE_INTERVALS, type SeriesName } from '../../core/interval.ts';

export type RowRequest = SeriesName & {
  readonly from: Instant;
  /** The last requested open time. */
  readonly to: Instant;
};

/** Chandler itself never omits `end`, which would mean now. */
const NO_NOW = Number.NEGATIVE_INFINITY;
const CANDLES = /\/coins\/([^/]+)\/ohlcv(\/historical)?$/;
const PRICES = /\/tickers\/([^/]+)\/historical$/;

/** Null when the request is for neither, or cannot be parsed. */
export function parseRowRequest({ url }: { readonly url: string }): RowRequest | null {
  const { pathname, searchParams } = new URL(url);
  const ofCandles = CANDLES.exec(pathname)?.[1];
  if (ofCandles !== undefined) {
    const read = parseOhlcvParameters(searchParams, NO_NOW);
    return read.ok ? { ...read.value, coinId: decodeURIComponent(ofCandles) } : null;
  }
  const ofPrices = PRICES.exec(pathname)?.[1];
  const read = ofPrices === undefined ? null : parseTickerHistoryParameters(searchParams, NO_NOW);
  if (!read?.ok) return null;
  const { quote, from, to, widthMs } = read.value;
  const interval = PRICE_INTERVALS.find((one) => INTERVAL_MS[one] === widthMs);
  if (interval === undefined || to === NO_NOW) return null;
  // The `end` of prices is exclusive.
  const last = Math.ceil(to / widthMs - 1) * widthMs;
  return { coinId: decodeURIComponent(ofPrices!), quote, interval, from, to: last };
}
