/** `/tickers`, `/coins`, `/global`, `/exchanges`: the market as it is now. */
import { Hono } from 'hono';
import { UNKNOWN_ID } from '../contract/errors.ts';
import type { MarketData } from '../contract/market-data.ts';
import { parseQuotes } from '../contract/parameters.ts';
import { COINS_PATH, EXCHANGES_PATH, GLOBAL_PATH, TICKERS_PATH } from '../contract/paths.ts';
import { PLANS, type Plan } from '../contract/plans.ts';
import type { Ticker } from '../contract/records.ts';
import { answerJson, refuse } from './answer.ts';
import type { ServiceEnv } from './service-env.ts';

export function marketRoutes({ data }: { data: MarketData }): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();

  routes.on(['GET', 'POST'], TICKERS_PATH, async (c) => {
    const quotes = parseQuotes(c.req.query('quotes') ?? null);
    if (!quotes.ok) return refuse(c, 400, quotes.message);
    const tickers = await data.tickers({ quotes: quotes.value });
    const plan = PLANS[c.var.plan];
    return answerJson(
      c,
      tickers.slice(0, plan.tickerCoins ?? undefined).map((ticker) => shownTo(plan, ticker)),
    );
  });

  routes.on(['GET', 'POST'], `${TICKERS_PATH}/:id`, async (c) => {
    const quotes = parseQuotes(c.req.query('quotes') ?? null);
    if (!quotes.ok) return refuse(c, 400, quotes.message);
    const ticker = await data.ticker({ coinId: c.req.param('id'), quotes: quotes.value });
    return ticker ? answerJson(c, shownTo(PLANS[c.var.plan], ticker)) : refuse(c, 404, UNKNOWN_ID);
  });

  routes.on(['GET', 'POST'], COINS_PATH, async (c) => answerJson(c, await data.coins()));
  routes.on(['GET', 'POST'], GLOBAL_PATH, async (c) => answerJson(c, await data.global()));
  routes.on(['GET', 'POST'], EXCHANGES_PATH, async (c) => {
    const quotes = parseQuotes(c.req.query('quotes') ?? null);
    if (!quotes.ok) return refuse(c, 400, quotes.message);
    return answerJson(c, await data.exchanges({ quotes: quotes.value }));
  });
  return routes;
}

/** A ticker without what the plan does not include (decision 18). */
function shownTo(plan: Plan, ticker: Ticker): Partial<Ticker> {
  if (plan.circulatingSupply) return ticker;
  const { circulating_supply: _, ...rest } = ticker;
  return rest;
}
