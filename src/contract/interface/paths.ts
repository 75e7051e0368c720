/** Paths and parameter names of the REST interface, below the base address, so that client and service cannot disagree. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { type CandleInterval, type PriceInterval, widthOf } from '../../core/interval.ts';
import { MAX_PRICES } from '../plan/plans.ts';
import { formatTime } from '../time.ts';

/** The path segment every REST base address ends in. */
export const BASE_PATH = '/v1';

export const TICKERS_PATH = '/tickers';
export const COINS_PATH = '/coins';
/** Ids of coins elsewhere; from the plan `business` on. */
export const MAPPINGS_PATH = `${COINS_PATH}/mappings`;
export const GLOBAL_PATH = '/global';
export const EXCHANGES_PATH = '/exchanges';
export const TAGS_PATH = '/tags';
export const PEOPLE_PATH = '/people';
/** Of platforms, and below it of their contracts. */
export const CONTRACTS_PATH = '/contracts';
/** Coins that got a new id; from the plan `starter` on. */
export const ID_CHANGES_PATH = '/changelog/ids';
/** "Who am I": the first is the API document's, the second the one that the real service has. One body (decision 7). */
export const ACCOUNT_PATHS = ['/users/me', '/key/info'] as const;
export type AccountPath = (typeof ACCOUNT_PATHS)[number];

/** The path that both the API document and the real service have. */
export function ohlcvPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/historical`;
}

/** The last full day of a coin: one candle, under every plan. */
export function ohlcvLatestPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/latest`;
}

/** The day that is open: one candle, under every plan. */
export function ohlcvTodayPath(coinId: string): string {
  return `${COINS_PATH}/${encodeURIComponent(coinId)}/ohlcv/today`;
}

/**
 * The parameters of an OHLCV request, all of them, because every default of the upstream is a trap (`limit` is 1).
 * `from` and `to` are the first and the last open time wanted, both included.
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

/** The parameters of a request for a price series: here `end` is exclusive (upstream-api.md, 1.7). */
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

/** In every answer of a simulator: which market it simulates. The real upstream sends no such header. */
export const SIMULATOR_HEADER = 'Chandler-Simulator';
