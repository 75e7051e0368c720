/** `/global`, `/tickers`, `/coins`, `/exchanges`: the market as it is now. */
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import { PAGE_ROWS, parsePage } from '../../contract/interface/catalogue-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import { type Parsed, parseQuotes } from '../../contract/interface/parameters.ts';
import { PLANS, type Plan } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { legacyTickerOf, simpleTickerOf } from '../../contract/record/older-records.ts';
import type { Ticker } from '../../contract/record/records.ts';
import { answerJson, refuse, refuseId, refuseRoute, type Shown } from '../http/answer.ts';
import { type Answer, type Asked, idOf, impossible } from '../http/request-input.ts';
import { tickerShownTo, tickersShownTo } from '../http/visible-fields.ts';

/** The quotes of the older form of tickers. */
const LEGACY_QUOTES = ['USD', 'BTC'];

export function marketRoutes({ data }: { data: MarketData<Nothing> }) {
  return {
    getGlobal: async (c) => answerJson(c, await data.global()),
    getCoins: async (c) => answerJson(c, await data.coins()),
    getTickers: async (c) => {
      const quotes = quotesOf(c);
      if (!quotes.ok) return refuse(c, 400, quotes.message);
      const plan = planOf(c);
      const tickers = await data.tickers({ quotes: quotes.value, most: plan.tickerCoins });
      return answerJson(c, tickers, allShownTo(plan, tickers));
    },
    getTickersSimple: async (c) => {
      // As on the upstream's free host (upstream-api.md, 1.6).
      if (c.get('plan') === 'free') return refuseRoute(c);
      const quotes = quotesOf(c);
      if (!quotes.ok) return refuse(c, 400, quotes.message);
      const page = parsePage(c.req.query('page') ?? null);
      if (!page.ok) return refuse(c, 400, page.message);
      const tickers = await data.tickers({ quotes: quotes.value });
      const first = (page.value - 1) * PAGE_ROWS;
      return answerJson(c, tickers, {
        // Whatever number is asked for: what is beyond the end is one answer, and kept once.
        variant: first < tickers.length ? `simple ${page.value}` : 'simple none',
        as: () => tickers.slice(first, first + PAGE_ROWS).map(simpleTickerOf),
      });
    },
    getTickersById: async (c) => {
      const quotes = quotesOf(c);
      if (!quotes.ok) return refuse(c, 400, quotes.message);
      const coinId = idOf(c, 'coin_id');
      const ticker = coinId === null ? impossible(data) : await data.ticker({ coinId, quotes: quotes.value });
      return isThere(ticker) ? answerJson(c, ticker, shownTo(planOf(c), ticker)) : refuseId(c, ticker);
    },
    getTickersDeprecated: async (c) => {
      const plan = planOf(c);
      const tickers = await data.tickers({ quotes: LEGACY_QUOTES, most: plan.tickerCoins });
      return answerJson(c, tickers, {
        variant: `legacy ${plan.tickerCoins} ${plan.circulatingSupply}`,
        as: () =>
          tickers
            .slice(0, plan.tickerCoins ?? undefined)
            .map((ticker) => legacyTickerOf(ticker, plan.circulatingSupply)),
      });
    },
    getTickerByIdDeprecated: async (c) => {
      const { circulatingSupply } = planOf(c);
      const coinId = idOf(c, 'coin_id');
      const ticker = coinId === null ? impossible(data) : await data.ticker({ coinId, quotes: LEGACY_QUOTES });
      if (!isThere(ticker)) return refuseId(c, ticker);
      return answerJson(c, ticker, {
        variant: `legacy ${circulatingSupply}`,
        as: () => legacyTickerOf(ticker, circulatingSupply),
      });
    },
    getExchanges: async (c) => {
      const quotes = quotesOf(c);
      if (!quotes.ok) return refuse(c, 400, quotes.message);
      return answerJson(c, await data.exchanges({ quotes: quotes.value }));
    },
  } satisfies Partial<Record<EndpointName, Answer>>;
}

export function quotesOf(c: Asked): Parsed<readonly string[]> {
  return parseQuotes(c.req.query('quotes') ?? null);
}

function planOf(c: Asked): Plan {
  return PLANS[c.get('plan')];
}

function shownTo(plan: Plan, ticker: Ticker): Shown | undefined {
  return plan.circulatingSupply ? undefined : { variant: 'no supply', as: () => tickerShownTo(plan, ticker) };
}

function allShownTo(plan: Plan, tickers: readonly Ticker[]): Shown | undefined {
  if (plan.circulatingSupply && plan.tickerCoins === null) return undefined;
  return { variant: `first ${plan.tickerCoins}`, as: () => tickersShownTo(plan, tickers) };
}
