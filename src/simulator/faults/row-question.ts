/** What a request for candles or for prices asks. */
import type { Instant } from '../../clock.ts';
import { parseOhlcvParameters, parseTickerHistoryParameters } from '../../contract/interface/endpoint-parameters.ts';
import { INTERVAL_MS, PRICE_INTERVALS, type SeriesName } from '../../core/interval.ts';

export type RowQuestion = SeriesName & {
  readonly from: Instant;
  /** The last open time asked for. */
  readonly to: Instant;
};

/** Chandler itself never asks until now. */
const NO_NOW = Number.NEGATIVE_INFINITY;
const CANDLES = /\/coins\/([^/]+)\/ohlcv(\/historical)?$/;
const PRICES = /\/tickers\/([^/]+)\/historical$/;

/** Null when the request is for neither, or cannot be understood. */
export function rowQuestion({ url }: { readonly url: string }): RowQuestion | null {
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
  // Here `end` is exclusive.
  const last = Math.ceil(to / widthMs - 1) * widthMs;
  return { coinId: decodeURIComponent(ofPrices!), quote, interval, from, to: last };
}
