/** `/coins/{id}/ohlcv…` and `/tickers/{id}/historical`: what was. */
import type { Clock, Instant } from '../../clock.ts';
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import { parseTickerHistoryParameters } from '../../contract/interface/catalogue-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import { parseOhlcvParameters, parseQuote } from '../../contract/interface/parameters.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { writeOhlcvRows } from '../../contract/record/ohlcv.ts';
import { DAY, floorToGrid } from '../../core/interval.ts';
import { answerCandles, answerJson, redirect, refuse, refuseId } from '../http/answer.ts';
import { type Answer, idOf, impossible, queryOf, searchOf } from '../http/request-input.ts';

export type HistoryParts = { readonly data: MarketData<Nothing>; readonly access: Access; readonly clock: Clock };

export function historyRoutes({ data, access, clock }: HistoryParts) {
  /** An unknown coin has no candles: 200 `[]`, as upstream (decision 11). */
  const historical: Answer = async (c) => {
    const parsed = parseOhlcvParameters(queryOf(c));
    if (!parsed.ok) return refuse(c, 400, parsed.message);
    const { start, ...query } = parsed.value;
    const wall = access.refuseHistory(c.get('plan'), query.interval, start);
    if (wall !== null) return refuse(c, 402, wall);
    const coinId = idOf(c, 'coin_id');
    const candles = coinId === null ? impossible(data) : await data.ohlcv({ ...query, coinId });
    return answerCandles(c, candles, writeOhlcvRows);
  };

  /** One daily candle, which every plan may see. */
  const oneDay =
    (openTime: () => Instant): Answer =>
    async (c) => {
      const quote = parseQuote(c.req.query('quote') ?? null);
      if (!quote.ok) return refuse(c, 400, quote.message);
      const at = openTime();
      const coinId = idOf(c, 'coin_id');
      if (coinId === null) return answerCandles(c, impossible(data), writeOhlcvRows);
      const query = { coinId, quote: quote.value, interval: '24h', from: at, to: at, limit: 1 } as const;
      return answerCandles(c, await data.ohlcv(query), writeOhlcvRows);
    };

  const today = () => floorToGrid(clock.now(), '24h');
  return {
    getCoinOHLCV: withoutSlash(historical),
    getCoinOHLCVHistorical: withoutSlash(historical),
    getCoinOHLCVLatest: withoutSlash(oneDay(() => today() - DAY)),
    getCoinOHLCVToday: withoutSlash(oneDay(today)),
    getTickersHistoricalById: async (c) => {
      const parsed = parseTickerHistoryParameters(queryOf(c), clock.now());
      if (!parsed.ok) return refuse(c, 400, parsed.message);
      const { start, resolution, ...query } = parsed.value;
      const wall = access.refuseTickerHistory(c.get('plan'), resolution, start);
      if (wall !== null) return refuse(c, 402, wall);
      const coinId = idOf(c, 'coin_id');
      const ticks = coinId === null ? impossible(data) : await data.tickerHistory({ ...query, coinId });
      return isThere(ticks) ? answerJson(c, ticks) : refuseId(c, ticks);
    },
  } satisfies Partial<Record<EndpointName, Answer>>;
}

/** The upstream's OHLCV service sends a slash too many away; the others accept it (decision 22). */
function withoutSlash(answer: Answer): Answer {
  return (c) => {
    // The router has taken the slash off `c.req.path`.
    const { url } = c.req;
    const end = url.indexOf('?');
    if (url.at(end < 0 ? -1 : end - 1) !== '/') return answer(c);
    const { pathname } = new URL(url);
    return redirect(c, pathname.replace(/\/{2,}/g, '/').slice(0, -1) + searchOf(c));
  };
}
