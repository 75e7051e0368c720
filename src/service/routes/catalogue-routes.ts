/** What is known about coins, exchanges, people, tags and contracts, and what is found or reckoned from it. */
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import {
  parseConversionParameters,
  parsePage,
  parseSearchParameters,
  parseTagFields,
} from '../../contract/interface/catalogue-parameters.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import { BASE_PATH, TICKERS_PATH } from '../../contract/interface/paths.ts';
import type { Access } from '../../contract/plan/access.ts';
import type { MarketData } from '../../contract/record/market-data.ts';
import { answerJson, redirect, refuse, refuseId } from '../http/answer.ts';
import { type Answer, type Asked, idOf, impossible, isPossibleId, queryOf, searchOf } from '../http/request-input.ts';
import { tagShownWith } from '../http/visible-fields.ts';
import { quotesOf } from './market-routes.ts';

export function catalogueRoutes({ data, access }: { readonly data: MarketData<Nothing>; readonly access: Access }) {
  /** A record by the id in the path, or `id not found`. */
  const byId =
    (name: string, read: (id: string) => Promise<object | Nothing>): Answer =>
    async (c) => {
      const id = idOf(c, name);
      const record = id === null ? impossible(data) : await read(id);
      return isThere(record) ? answerJson(c, record) : refuseId(c, record);
    };
  /** The same, with prices in the currencies that are asked for. */
  const byIdIn =
    (name: string, read: (id: string, quotes: readonly string[]) => Promise<object | Nothing>): Answer =>
    async (c) => {
      const quotes = quotesOf(c);
      if (!quotes.ok) return refuse(c, 400, quotes.message);
      return byId(name, (id) => read(id, quotes.value))(c);
    };
  /** To the coin behind a contract; what is below its ticker stays so, and so does the query. */
  const toTicker =
    (below: string): Answer =>
    async (c) => {
      const platformId = idOf(c, 'platform_id');
      const address = idOf(c, 'contract_address');
      const found = platformId && address ? await data.coinOfContract({ platformId, address }) : impossible(data);
      if (!isThere(found)) return refuseId(c, found);
      const path = `${BASE_PATH}${TICKERS_PATH}/${encodeURIComponent(found.coinId)}${below}${searchOf(c)}`;
      return redirect(c, path, found);
    };
  const tagFields = (c: Asked) => parseTagFields(c.req.query('additional_fields') ?? null);

  return {
    getCoinById: byId('coin_id', (id) => data.coin(id)),
    getCoinEvents: byId('coin_id', (id) => data.coinEvents(id)),
    getCoinExchanges: byId('coin_id', (id) => data.coinExchanges(id)),
    getCoinMarkets: byIdIn('coin_id', (coinId, quotes) => data.coinMarkets({ coinId, quotes })),
    getExchangeByID: byIdIn('exchange_id', (exchangeId, quotes) => data.exchange({ exchangeId, quotes })),
    getExchangeMarkets: byIdIn('exchange_id', (exchangeId, quotes) => data.exchangeMarkets({ exchangeId, quotes })),
    getPeopleById: byId('person_id', (id) => data.person(id)),
    getTags: async (c) => {
      const fields = tagFields(c);
      if (!fields.ok) return refuse(c, 400, fields.message);
      const tags = await data.tags();
      const as = () => tags.map((tag) => tagShownWith(fields.value, tag));
      return answerJson(c, tags, { variant: [...fields.value].sort().join(), as });
    },
    getTagById: async (c) => {
      const fields = tagFields(c);
      if (!fields.ok) return refuse(c, 400, fields.message);
      const id = idOf(c, 'tag_id');
      const tag = id === null ? impossible(data) : await data.tag(id);
      if (!isThere(tag)) return refuseId(c, tag);
      return answerJson(c, tag, {
        variant: [...fields.value].sort().join(),
        as: () => tagShownWith(fields.value, tag),
      });
    },
    getPlatforms: async (c) => answerJson(c, await data.platforms()),
    getContracts: byId('platform_id', (id) => data.contracts(id)),
    getTicker: toTicker(''),
    getHistoricalTicker: toTicker('/historical'),
    search: async (c) => {
      const query = parseSearchParameters(queryOf(c));
      return query.ok ? answerJson(c, await data.search(query.value)) : refuse(c, 400, query.message);
    },
    priceConverter: async (c) => {
      const query = parseConversionParameters(queryOf(c));
      if (!query.ok) return refuse(c, 400, query.message);
      const { baseId, quoteId } = query.value;
      const isPossible = isPossibleId(baseId) && isPossibleId(quoteId);
      const conversion = isPossible ? await data.convert(query.value) : impossible(data);
      return isThere(conversion) ? answerJson(c, conversion) : refuseId(c, conversion);
    },
    getChangelogIDs: async (c) => {
      const page = parsePage(c.req.query('page') ?? null);
      if (!page.ok) return refuse(c, 400, page.message);
      const wall = access.refuseIdChanges(c.get('plan'));
      if (wall !== null) return refuse(c, 402, wall);
      return answerJson(c, await data.idChanges({ page: page.value }));
    },
  } satisfies Partial<Record<EndpointName, Answer>>;
}
