/** Paths (below the base address) and parameter names of the REST interface. Client and service share them, so they always agree. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { type CandleInterval, type PriceInterval, widthOf } from '../../core/interval.ts';
import { MAX_PRICES } from '../plan/plans.ts';
import { formatTime } from '../time.ts';

/** The path segment at the end of every REST base address. */
export const BASE_PATH = '/v1';

export const TICKERS_PATH = '/tickers';
export const COINS_PATH = '/coins';
/** Ids of coins at other providers; from the plan `business` on. */
export const MAPPINGS_PATH = `${COINS_PATH}/mappings`;
export const GLOBAL_PATH = '/global';
export const EXCHANGES_PATH = '/exchanges';
export const TAGS_PATH = '/tags';
export const PEOPLE_PATH = '/people';
/** The platforms; the contracts of each are below this path. */
export const CONTRACTS_PATH = '/contracts';
/** Coins that got a new id; from the plan `starter` on. */
export const ID_CHANGES_PATH = '/changelog/ids';
/** The caller's own account: the first path is in the API document, the second in the real service. Both have the same body (decision 7). */
export const ACCOUNT_PATHS = ['/users/me', '/key/info'] as const;
export type AccountPath = (typeof ACCOUNT_PATHS)[number];

/** The path for candles that both the API document and the real service have. */
export function ohlcvPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/historical`;
}

/** The last full day of a coin: one candle, under every plan. */
export function ohlcvLatestPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/latest`;
}

/** The open day of a coin: one candle, under every plan. */
export function ohlcvTodayPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/today`;
}

/**
 * All parameters of an OHLCV request, because the upstream's defaults are never what Chandler needs (`limit` is 1).
 * `from` and `to` are the first and the last open time, both included.
 */
export function ohlcvParameters(question: {
  readonly from: Instant;
  readonly to: Instant;
  readonly interval: CandleInterval;
  readonly quote: Quote;
  readonly limit: number;
}): Record<string, string> {
  return {
    start: formatTime(question.from),
    end: formatTime(question.to),
    interval: question.interval,
    limit: String(question.limit),
    quote: question.quote,
  };
}

/** The price series of a coin. */
export function priceHistoryPath(coinId: string): string {
  return `${TICKERS_PATH}/${encodeURIComponent(coinId)}/historical`;
}

/** The parameters of a request for a price series. Unlike for candles, `end` is exclusive (upstream-api.md, 1.7). */
export function priceHistoryParameters(question: {
  readonly from: Instant;
  readonly to: Instant;
  readonly interval: PriceInterval;
  readonly quote: Quote;
}): Record<string, string> {
  return {
    start: formatTime(question.from),
    end: formatTime(question.to),
    interval: widthOf(question.interval),
    limit: String(MAX_PRICES),
    quote: question.quote,
  };
}

/** Every answer of a simulator has this header, which names its market. The real upstream sends no such header. */
export const SIMULATOR_HEADER = 'Chandler-Simulator';
