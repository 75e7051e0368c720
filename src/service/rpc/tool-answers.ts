/** The tools of the API document: each answers with the data and the visible fields of the REST endpoint of the same name. */
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { withSameProvenance } from '../../contract/answer/provenance.ts';
import type { ToolCall, ToolName } from '../../contract/interface/tools.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { impossibleId, isPossibleId } from '../http/request-input.ts';
import { visibleTag, visibleTicker, visibleTickers } from '../http/visible-fields.ts';

/** The arguments that are ids. */
const IDS = [
  'coinId',
  'personId',
  'tagId',
  'exchangeId',
  'platformId',
  'contractAddress',
  'baseCurrencyId',
  'quoteCurrencyId',
] as const;

/** Whether one of the arguments is an id that cannot exist. Then no data are read. */
export function hasImpossibleId(given: Readonly<Record<string, unknown>>): boolean {
  return IDS.some((name) => typeof given[name] === 'string' && !isPossibleId(given[name]));
}

/** The output, or "not found" for an unknown id. */
export async function answerTool(data: MarketData<Missing>, plan: Plan, call: ToolCall): Promise<object | Missing> {
  if (hasImpossibleId(call.arguments)) return impossibleId(data);
  const answer = answersOf(data, plan)[call.name];
  // The table has the right arguments for each name, but TypeScript cannot follow a name that is a variable.
  return answer(call.arguments as never);
}

type Arguments<N extends ToolName> = Extract<ToolCall, { name: N }>['arguments'];
type Answers = { readonly [N in ToolName]: (given: Arguments<N>) => Promise<object | Missing> };

function answersOf(data: MarketData<Missing>, plan: Plan): Answers {
  const tickerOf = (query: { readonly coinId: string; readonly quotes: readonly string[] }) =>
    viewOf(data.ticker(query), (ticker) => visibleTicker(plan, ticker));
  return {
    getGlobal: () => data.global(),
    getCoins: ({ limit }) => firstOf(limit, data.coins()),
    getCoinById: ({ coinId }) => data.coin(coinId),
    getCoinEvents: ({ coinId, limit }) => firstOf(limit, data.coinEvents(coinId)),
    getCoinExchanges: ({ coinId, limit }) => firstOf(limit, data.coinExchanges(coinId)),
    getCoinMarkets: (query) => firstOf(query.limit, data.coinMarkets(query)),
    getTickers: ({ quotes, limit }) =>
      viewOf(data.tickers({ quotes, most: plan.tickerCoins }), (all) => visibleTickers(plan, all, limit)),
    getTickersById: tickerOf,
    getPeopleById: ({ personId }) => data.person(personId),
    getTags: ({ additionalFields, limit }) =>
      viewOf(data.tags(), (tags) => tags.slice(0, limit).map((tag) => visibleTag(additionalFields, tag))),
    getTagById: ({ tagId, additionalFields }) => viewOf(data.tag(tagId), (tag) => visibleTag(additionalFields, tag)),
    getExchanges: (query) => firstOf(query.limit, data.exchanges(query)),
    getExchangeByID: (query) => data.exchange(query),
    getExchangeMarkets: (query) => firstOf(query.limit, data.exchangeMarkets(query)),
    getPlatforms: ({ limit }) => firstOf(limit, data.platforms()),
    getContracts: ({ platformId, limit }) => firstOf(limit, data.contracts(platformId)),
    getTickerByContract: async ({ platformId, contractAddress }) => {
      const found = await data.coinOfContract({ platformId, address: contractAddress });
      return isFound(found) ? tickerOf({ coinId: found.coinId, quotes: ['USD'] }) : found;
    },
    priceConverter: ({ baseCurrencyId, quoteCurrencyId, amount }) =>
      data.convert({ baseId: baseCurrencyId, quoteId: quoteCurrencyId, amount }),
    search: ({ q, categories, modifier, limit }) => data.search({ q, categories, symbolOnly: modifier, limit }),
  };
}

function firstOf<T>(limit: number, answer: Promise<readonly T[] | Missing>): Promise<readonly T[] | Missing> {
  return viewOf(answer, (rows) => rows.slice(0, limit));
}

/** The part of an answer that `view` selects, with the provenance of the answer. */
async function viewOf<T extends object, V extends object>(
  answer: Promise<T | Missing>,
  view: (answer: T) => V,
): Promise<V | Missing> {
  const found = await answer;
  return isFound(found) ? withSameProvenance(view(found), found) : found;
}
