/** `/global`, `/tickers`, `/coins`, `/exchanges`: the current market. */
import type { Missing } from '../../contract/answer/not-found.ts';
import { PAGE_ROWS, page as pageParameter } from '../../contract/interface/endpoint-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import { PLANS, type Plan } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { legacyTickerOf, simpleTickerOf } from '../../contract/record/older-records.ts';
import type { Ticker } from '../../contract/record/records.ts';
import { answerJson, refuse, refuseRoute } from '../http/answer.ts';
import { type Answer, queryOf, type RequestInput } from '../http/request-input.ts';
import { visibleTicker, visibleTickers } from '../http/visible-fields.ts';
import { recordById, withQuotes } from './answer-with.ts';

/** The quotes of the older form of tickers. */
const LEGACY_QUOTES = ['USD', 'BTC'];

export function marketRoutes({ data }: { data: MarketData<Missing> }) {
  const tickerById = (quotes: readonly string[], view: (plan: Plan, ticker: Ticker) => object) => {
    const read = (coinId: string) => data.ticker({ coinId, quotes });
    return recordById(data, 'coin_id', read, (c, ticker) => view(planOf(c), ticker));
  };
  const simpleTickers = withQuotes(async (c, quotes) => {
    const page = pageParameter.parse(queryOf(c).get('page'));
    if (!page.ok) return refuse(c, 400, page.message);
    const tickers = await data.tickers({ quotes });
    const first = (page.value - 1) * PAGE_ROWS;
    return answerJson(c, tickers, { visible: tickers.slice(first, first + PAGE_ROWS).map(simpleTickerOf) });
  });

  return {
    getGlobal: async (c) => answerJson(c, await data.global()),
    getCoins: async (c) => answerJson(c, await data.coins()),
    getTickers: withQuotes(async (c, quotes) => {
      const plan = planOf(c);
      const tickers = await data.tickers({ quotes, most: plan.tickerCoins });
      return answerJson(c, tickers, { visible: visibleTickers(plan, tickers) });
    }),
    // The free plan does not have this route, as on the upstream's free host (upstream-api.md, 1.6).
    getTickersSimple: (c) => (c.get('plan') === 'free' ? refuseRoute(c) : simpleTickers(c)),
    getTickersById: withQuotes((c, quotes) => tickerById(quotes, visibleTicker)(c)),
    getTickersDeprecated: async (c) => {
      const { tickerCoins, circulatingSupply } = planOf(c);
      const tickers = await data.tickers({ quotes: LEGACY_QUOTES, most: tickerCoins });
      const visible = tickers.slice(0, tickerCoins ?? undefined).map((one) => legacyTickerOf(one, circulatingSupply));
      return answerJson(c, tickers, { visible });
    },
    getTickerByIdDeprecated: tickerById(LEGACY_QUOTES, (plan, one) => legacyTickerOf(one, plan.circulatingSupply)),
    getExchanges: withQuotes(async (c, quotes) => answerJson(c, await data.exchanges({ quotes }))),
  } satisfies Partial<Record<EndpointName, Answer>>;
}

function planOf(c: RequestInput): Plan {
  return PLANS[c.get('plan')];
}
