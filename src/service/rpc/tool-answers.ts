/** The answers of the tools: the same data with the same visible fields as the REST endpoint of that name. */
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { withSameProvenance } from '../../contract/answer/provenance.ts';
import type { ToolCall } from '../../contract/interface/tools.ts';
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

/** Is one of them an id that nothing can have? Then no data are read. */
export function hasImpossibleId(given: Readonly<Record<string, unknown>>): boolean {
  return IDS.some((name) => typeof given[name] === 'string' && !isPossibleId(given[name]));
}

/** The output, or "not found" for an unknown id. */
export async function answerTool(data: MarketData<Missing>, plan: Plan, call: ToolCall): Promise<object | Missing> {
  if (hasImpossibleId(call.arguments)) return impossibleId(data);
  switch (call.name) {
    case 'getGlobal':
      return data.global();
    case 'getCoins':
      return first(call.arguments.limit, await data.coins());
    case 'getCoinById':
      return data.coin(call.arguments.coinId);
    case 'getCoinEvents':
      return first(call.arguments.limit, await data.coinEvents(call.arguments.coinId));
    case 'getCoinExchanges':
      return first(call.arguments.limit, await data.coinExchanges(call.arguments.coinId));
    case 'getCoinMarkets':
      return first(call.arguments.limit, await data.coinMarkets(call.arguments));
    case 'getTickers':
      return viewed(await data.tickers({ quotes: call.arguments.quotes, most: plan.tickerCoins }), (all) =>
        visibleTickers(plan, all, call.arguments.limit),
      );
    case 'getTickersById':
      return viewed(await data.ticker(call.arguments), (ticker) => visibleTicker(plan, ticker));
    case 'getPeopleById':
      return data.person(call.arguments.personId);
    case 'getTags': {
      const { additionalFields, limit } = call.arguments;
      return viewed(await data.tags(), (tags) => tags.slice(0, limit).map((tag) => visibleTag(additionalFields, tag)));
    }
    case 'getTagById': {
      const { tagId, additionalFields } = call.arguments;
      return viewed(await data.tag(tagId), (tag) => visibleTag(additionalFields, tag));
    }
    case 'getExchanges':
      return first(call.arguments.limit, await data.exchanges(call.arguments));
    case 'getExchangeByID':
      return data.exchange(call.arguments);
    case 'getExchangeMarkets':
      return first(call.arguments.limit, await data.exchangeMarkets(call.arguments));
    case 'getPlatforms':
      return first(call.arguments.limit, await data.platforms());
    case 'getContracts':
      return first(call.arguments.limit, await data.contracts(call.arguments.platformId));
    case 'getTickerByContract': {
      const { platformId, contractAddress } = call.arguments;
      const found = await data.coinOfContract({ platformId, address: contractAddress });
      if (!isFound(found)) return found;
      return viewed(await data.ticker({ coinId: found.coinId, quotes: ['USD'] }), (ticker) =>
        visibleTicker(plan, ticker),
      );
    }
    case 'priceConverter': {
      const { baseCurrencyId, quoteCurrencyId, amount } = call.arguments;
      return data.convert({ baseId: baseCurrencyId, quoteId: quoteCurrencyId, amount });
    }
    case 'search': {
      const { q, categories, modifier, limit } = call.arguments;
      return data.search({ q, categories, symbolOnly: modifier, limit });
    }
  }
}

function first<T>(limit: number, all: readonly T[] | Missing): readonly T[] | Missing {
  return viewed(all, (rows) => rows.slice(0, limit));
}

function viewed<T extends object, V extends object>(answer: T | Missing, view: (answer: T) => V): V | Missing {
  return isFound(answer) ? withSameProvenance(view(answer), answer) : answer;
}
