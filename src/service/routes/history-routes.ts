/** `/coins/{id}/ohlcv…` and `/tickers/{id}/historical`: historical data. */
import type { Clock, Instant } from '../../clock.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import {
  parseOhlcvParameters,
  parseTickerHistoryParameters,
  quote as quoteParameter,
} from '../../contract/interface/endpoint-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { writeOhlcvRows } from '../../contract/record/ohlcv.ts';
import { DAY, floorToGrid } from '../../core/interval.ts';
import { answerCandles, answerJson, redirect, refuse, refuseId } from '../http/answer.ts';
import { type Answer, idOf, impossibleId, queryOf, searchOf } from '../http/request-input.ts';
import { withParsed } from './answer-with.ts';

type HistoryDeps = {
  readonly data: MarketData<Missing>;
  readonly access: Access;
  readonly clock: Clock;
  /** How long after midnight `/ohlcv/latest` switches to the day that has ended; default: at once. */
  readonly latestTurnsAfterMs?: number | undefined;
};

export function historyRoutes({ data, access, clock, latestTurnsAfterMs = 0 }: HistoryDeps) {
  /** An unknown coin has no candles: the answer is 200 `[]`, as from upstream (decision 11). */
  const historical = withParsed(
    (c) => parseOhlcvParameters(queryOf(c), clock.now()),
    async (c, { start, ...query }) => {
      const plan = c.get('plan');
      const refusalOf = () => access.refuseHistory(plan, query.interval, start);
      const refusal = refusalOf();
      if (refusal !== null) return refuse(c, 402, refusal);
      const coinId = idOf(c, 'coin_id');
      const candles = coinId === null ? impossibleId(data) : await data.ohlcv({ ...query, coinId });
      const isSameQuestion = queryOf(c).get('end') && isUntilNow(c) ? 'never' : () => refusalOf() === null;
      return answerCandles(c, candles, writeOhlcvRows, { isSameQuestion });
    },
  );

  /** Answers with one daily candle, which every plan may see. */
  const oneDay = (openTime: () => Instant): Answer =>
    withParsed(
      (c) => quoteParameter.parse(queryOf(c).get('quote')),
      async (c, quote) => {
        const at = openTime();
        const coinId = idOf(c, 'coin_id');
        const query = { quote, interval: '24h', from: at, to: at, limit: 1 } as const;
        const candles = coinId === null ? impossibleId(data) : await data.ohlcv({ ...query, coinId });
        return answerCandles(c, candles, writeOhlcvRows, { isSameQuestion: () => openTime() === at });
      },
    );

  const today = () => floorToGrid(clock.now(), '24h');
  return {
    getCoinOHLCV: withoutSlash(historical),
    getCoinOHLCVHistorical: withoutSlash(historical),
    getCoinOHLCVLatest: withoutSlash(oneDay(() => floorToGrid(clock.now() - latestTurnsAfterMs, '24h') - DAY)),
    getCoinOHLCVToday: withoutSlash(oneDay(today)),
    getTickersHistoricalById: withParsed(
      (c) => parseTickerHistoryParameters(queryOf(c), clock.now()),
      async (c, { start, resolution, ...query }) => {
        const plan = c.get('plan');
        const refusalOf = () => access.refuseTickerHistory(plan, resolution, start);
        const refusal = refusalOf();
        if (refusal !== null) return refuse(c, 402, refusal);
        const coinId = idOf(c, 'coin_id');
        const ticks = coinId === null ? impossibleId(data) : await data.tickerHistory({ ...query, coinId });
        if (!isFound(ticks)) return refuseId(c, ticks);
        return answerJson(c, ticks, { isSameQuestion: isUntilNow(c) ? 'never' : () => refusalOf() === null });
      },
    ),
  } satisfies Partial<Record<EndpointName, Answer>>;
}

/** Whether the range ends "now". Such a request means another range each time. */
function isUntilNow(c: Parameters<Answer>[0]): boolean {
  return /^(now)?$/i.test(queryOf(c).get('end') ?? '');
}

/** The upstream's OHLCV service redirects a path with a slash at its end; the others accept it (decision 22). */
function withoutSlash(answer: Answer): Answer {
  return (c) => {
    // The router has removed the slash from `c.req.path`.
    const { url } = c.req;
    const end = url.indexOf('?');
    if (url.at(end < 0 ? -1 : end - 1) !== '/') return answer(c);
    const { pathname } = new URL(url);
    return redirect(c, pathname.replace(/\/{2,}/g, '/').slice(0, -1) + searchOf(c));
  };
}
