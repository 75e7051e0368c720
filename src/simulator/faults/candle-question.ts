/** What a request for candles asks. */
import { parseOhlcvParameters } from '../../contract/interface/endpoint-parameters.ts';
import type { OhlcvQuery } from '../../contract/record/market-data.ts';

export type CandleQuestion = OhlcvQuery;

/** Chandler itself never asks until now. */
const NO_NOW = Number.NEGATIVE_INFINITY;
const PATH = /\/coins\/([^/]+)\/ohlcv(\/historical)?$/;

/** Null when the request is not for candles, or cannot be understood. `to` is the last open time asked for. */
export function candleQuestion({ url }: { readonly url: string }): CandleQuestion | null {
  const { pathname, searchParams } = new URL(url);
  const coinId = PATH.exec(pathname)?.[1];
  const read = coinId === undefined ? null : parseOhlcvParameters(searchParams, NO_NOW);
  return read?.ok ? { ...read.value, coinId: decodeURIComponent(coinId!) } : null;
}
