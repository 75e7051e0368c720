/** Coins, exchanges, people, tags, contracts and id changes, and the searches and calculations over them. */
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import {
  additionalFields,
  page,
  parseConversionParameters,
  parseSearchParameters,
} from '../../contract/interface/endpoint-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import { parseMappingParameters } from '../../contract/interface/mapping-parameters.ts';
import { BASE_PATH, TICKERS_PATH } from '../../contract/interface/paths.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { answerJson, redirect, refuse, refuseId } from '../http/answer.ts';
import {
  type Answer,
  idOf,
  impossibleId,
  isPossibleId,
  queryOf,
  type RequestInput,
  searchOf,
} from '../http/request-input.ts';
import { visibleTag } from '../http/visible-fields.ts';
import { recordById, withParsed, withQuotes } from './answer-with.ts';

export function catalogueRoutes({ data, access }: { readonly data: MarketData<Missing>; readonly access: Access }) {
  const byId = (parameter: string, read: (id: string) => Promise<object | Missing>) =>
    recordById(data, parameter, read);
  /** `byId`, with prices in the requested currencies. */
  const byIdInQuotes = (
    parameter: string,
    read: (id: string, quotes: readonly string[]) => Promise<object | Missing>,
  ): Answer => withQuotes((c, quotes) => byId(parameter, (id) => read(id, quotes))(c));
  /** Redirects to the coin of a contract; keeps the rest of the path (`suffix`) and the query. */
  const toTicker =
    (suffix: string): Answer =>
    async (c) => {
      const platformId = idOf(c, 'platform_id');
      const address = idOf(c, 'contract_address');
      const found = platformId && address ? await data.coinOfContract({ platformId, address }) : impossibleId(data);
      if (!isFound(found)) return refuseId(c, found);
      const path = `${BASE_PATH}${TICKERS_PATH}/${encodeURIComponent(found.coinId)}${suffix}${searchOf(c)}`;
      return redirect(c, path, found);
    };
  const tagFields = (c: RequestInput) => additionalFields.parse(queryOf(c).get('additional_fields'));

  return {
    getMappings: withParsed(
      (c) => parseMappingParameters(queryOf(c)),
      async (c, query) => {
        const refusal = access.refuseMappings(c.get('plan'));
        if (refusal !== null) return refuse(c, 402, refusal);
        const mapping = isPossibleId(query.id) ? await data.mapping(query) : impossibleId(data);
        return isFound(mapping) ? answerJson(c, mapping) : refuseId(c, mapping);
      },
    ),
    getCoinById: byId('coin_id', (id) => data.coin(id)),
    getCoinEvents: byId('coin_id', (id) => data.coinEvents(id)),
    getCoinExchanges: byId('coin_id', (id) => data.coinExchanges(id)),
    getCoinMarkets: byIdInQuotes('coin_id', (coinId, quotes) => data.coinMarkets({ coinId, quotes })),
    getExchangeByID: byIdInQuotes('exchange_id', (exchangeId, quotes) => data.exchange({ exchangeId, quotes })),
    getExchangeMarkets: byIdInQuotes('exchange_id', (exchangeId, quotes) =>
      data.exchangeMarkets({ exchangeId, quotes }),
    ),
    getPeopleById: byId('person_id', (id) => data.person(id)),
    getTags: withParsed(tagFields, async (c, fields) => {
      const tags = await data.tags();
      return answerJson(c, tags, { visible: tags.map((tag) => visibleTag(fields, tag)) });
    }),
    getTagById: withParsed(tagFields, (c, fields) => {
      const read = (id: string) => data.tag(id);
      return recordById(data, 'tag_id', read, (_, tag) => visibleTag(fields, tag))(c);
    }),
    getPlatforms: async (c) => answerJson(c, await data.platforms()),
    getContracts: byId('platform_id', (id) => data.contracts(id)),
    getTicker: toTicker(''),
    getHistoricalTicker: toTicker('/historical'),
    search: withParsed(
      (c) => parseSearchParameters(queryOf(c)),
      async (c, query) => answerJson(c, await data.search(query)),
    ),
    priceConverter: withParsed(
      (c) => parseConversionParameters(queryOf(c)),
      async (c, query) => {
        const isPossible = isPossibleId(query.baseId) && isPossibleId(query.quoteId);
        const conversion = isPossible ? await data.convert(query) : impossibleId(data);
        return isFound(conversion) ? answerJson(c, conversion) : refuseId(c, conversion);
      },
    ),
    getChangelogIDs: withParsed(
      (c) => page.parse(queryOf(c).get('page')),
      async (c, page) => {
        const refusal = access.refuseIdChanges(c.get('plan'));
        return refusal === null ? answerJson(c, await data.idChanges({ page })) : refuse(c, 402, refusal);
      },
    ),
  } satisfies Partial<Record<EndpointName, Answer>>;
}
