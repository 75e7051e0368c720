/**
 * The REST interface as one table: each endpoint with its path below the base address, its parameters and its answer. The routes of the
 * service and the OpenAPI document are generated from it, so both have the same endpoints.
 * Sources: API document, section 4.1; vendor's OpenAPI (upstream-api.md, section 1).
 */
import { z } from 'zod';
import * as catalogue from '../record/catalogue.ts';
import { legacyTickerSchema, legacyTickersSchema, simpleTickersSchema } from '../record/older-records.ts';
import * as records from '../record/records.ts';
import {
  additionalFields,
  candleParameters,
  conversionParameters,
  page,
  pathParameters,
  quote,
  quotes,
  searchParameters,
  tickParameters,
} from './endpoint-parameters.ts';
import { mappingParameters } from './mapping-parameters.ts';
import type { Parameter, QueryParameter } from './parameters.ts';

export type Endpoint = {
  readonly path: string;
  readonly group: 'Market' | 'Coins' | 'History' | 'Exchanges' | 'People and tags' | 'Contracts' | 'Tools' | 'Account';
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** The body of a 200; null when the answer is a redirect. */
  readonly answer: z.ZodType | null;
  /**
   * Statuses besides 200 (or 301), 402, 403, 429, 500 and 503, which any endpoint may have. `no route`: the free plan has no such
   * route, as on the upstream's free host.
   */
  readonly refusals: readonly (400 | 404 | 'no route')[];
  readonly deprecated?: true;
  /** The endpoint refuses unknown parameters. */
  readonly isStrict?: true;
};

const price = z.number().nullable();
const candlesSchema = z.array(
  z.looseObject({
    time_open: z.string(),
    time_close: z.string(),
    open: price,
    high: price,
    low: price,
    close: price,
    volume: z.int().nullable(),
    market_cap: z.int().nullable(),
  }),
);

/**
 * One endpoint. The default `refusals`: 400 for an invalid query, and 404 for an unknown id in the path. Candles of an unknown coin are an
 * empty list.
 */
function get(
  group: Endpoint['group'],
  path: string,
  summary: string,
  answer: z.ZodType | null,
  query: readonly QueryParameter<unknown>[] = [],
  more: Partial<Endpoint> = {},
): Endpoint {
  const ids = pathParameters(path);
  const refusals: Endpoint['refusals'] = [
    ...(query.length > 0 && answer !== null ? ([400] as const) : []),
    ...(ids.length > 0 && answer !== candlesSchema ? ([404] as const) : []),
  ];
  return {
    path,
    group,
    summary,
    parameters: [...ids, ...query.map(({ documented }) => documented)],
    answer,
    refusals,
    ...more,
  };
}

/** The endpoints by the vendor's operation ids. A path that is a special case of another comes before it. */
export const ENDPOINTS = {
  getGlobal: get('Market', '/global', 'The whole market at a glance', records.globalSchema),
  getTickers: get('Market', '/tickers', 'Tickers of all active coins, by rank', records.tickersSchema, [quotes]),
  getTickersSimple: get(
    'Market',
    '/tickers/simple',
    'Prices alone, a hundred coins to a page; not on the free plan',
    simpleTickersSchema,
    [quotes, page],
    { refusals: [400, 'no route'] },
  ),
  getTickersById: get('Market', '/tickers/{coin_id}', 'Ticker of one coin', records.tickerSchema, [quotes]),
  getTickersHistoricalById: get(
    'History',
    '/tickers/{coin_id}/historical',
    'Price history of a coin in spans of equal width; the end is not included',
    catalogue.historicalTicksSchema,
    tickParameters,
  ),
  getCoins: get('Coins', '/coins', 'All coins, inactive ones too', records.coinsSchema),
  getMappings: get(
    'Coins',
    '/coins/mappings',
    'Ids of a coin at other providers, found by any one of them; an unknown id is empty; from the plan business on',
    catalogue.coinMappingSchema,
    mappingParameters,
    { refusals: [400, 404], isStrict: true },
  ),
  getCoinById: get('Coins', '/coins/{coin_id}', 'What is known about a coin', catalogue.coinDetailsSchema),
  getCoinEvents: get('Coins', '/coins/{coin_id}/events', 'Events around a coin', catalogue.coinEventsSchema),
  getCoinExchanges: get('Coins', '/coins/{coin_id}/exchanges', 'Where a coin is traded', catalogue.coinExchangesSchema),
  getCoinMarkets: get('Coins', '/coins/{coin_id}/markets', 'Trading pairs of a coin', catalogue.coinMarketsSchema, [
    quotes,
  ]),
  getCoinOHLCV: get(
    'History',
    '/coins/{coin_id}/ohlcv',
    'Candles of a coin: the same as below /historical',
    candlesSchema,
    candleParameters,
  ),
  getCoinOHLCVHistorical: get(
    'History',
    '/coins/{coin_id}/ohlcv/historical',
    'Candles of a coin, both ends included, ascending; an unknown coin has none',
    candlesSchema,
    candleParameters,
  ),
  getCoinOHLCVLatest: get(
    'History',
    '/coins/{coin_id}/ohlcv/latest',
    'The candle of the last full day, UTC',
    candlesSchema,
    [quote],
  ),
  getCoinOHLCVToday: get(
    'History',
    '/coins/{coin_id}/ohlcv/today',
    'The candle of the day that is still open, UTC',
    candlesSchema,
    [quote],
  ),
  getExchanges: get('Exchanges', '/exchanges', 'All exchanges', records.exchangesSchema, [quotes]),
  getExchangeByID: get('Exchanges', '/exchanges/{exchange_id}', 'One exchange', records.exchangeSchema, [quotes]),
  getExchangeMarkets: get(
    'Exchanges',
    '/exchanges/{exchange_id}/markets',
    'The pairs traded on an exchange',
    catalogue.exchangeMarketsSchema,
    [quotes],
  ),
  getPeopleById: get(
    'People and tags',
    '/people/{person_id}',
    'A person, with positions and links',
    catalogue.personSchema,
  ),
  getTags: get('People and tags', '/tags', 'All tags', catalogue.tagsSchema, [additionalFields]),
  getTagById: get('People and tags', '/tags/{tag_id}', 'One tag', catalogue.tagSchema, [additionalFields]),
  getPlatforms: get(
    'Contracts',
    '/contracts',
    'Ids of the platforms: the coins on whose chains other coins have contracts',
    catalogue.platformsSchema,
  ),
  getContracts: get('Contracts', '/contracts/{platform_id}', 'Contracts on a platform', catalogue.contractsSchema),
  getTicker: get(
    'Contracts',
    '/contracts/{platform_id}/{contract_address}',
    'Redirects to the ticker of the coin behind a contract',
    null,
    [quotes],
  ),
  getHistoricalTicker: get(
    'Contracts',
    '/contracts/{platform_id}/{contract_address}/historical',
    'Redirects to the ticker history of the coin behind a contract',
    null,
    tickParameters,
  ),
  search: get(
    'Tools',
    '/search',
    'Finds currencies, exchanges, icos, people and tags by a part of their name',
    catalogue.searchResultSchema,
    searchParameters,
  ),
  priceConverter: get(
    'Tools',
    '/price-converter',
    'What an amount of one currency is worth in another',
    catalogue.priceConversionSchema,
    conversionParameters,
    { refusals: [400, 404] },
  ),
  getChangelogIDs: get(
    'Coins',
    '/changelog/ids',
    'Coins that got another id, the newest change first; not on the free plan',
    catalogue.idChangesSchema,
    [page],
  ),
  getUser: get('Account', '/users/me', 'The plan of the key, its limits and its usage', records.accountInfoSchema),
  getKeyInfo: get('Account', '/key/info', 'The same as /users/me', records.accountInfoSchema),
  getTickersDeprecated: get(
    'Market',
    '/ticker',
    'Tickers in their older form: texts instead of numbers',
    legacyTickersSchema,
    [],
    { deprecated: true },
  ),
  getTickerByIdDeprecated: get(
    'Market',
    '/ticker/{coin_id}',
    'Ticker of one coin in its older form',
    legacyTickerSchema,
    [],
    { deprecated: true },
  ),
} as const satisfies Readonly<Record<string, Endpoint>>;

export type EndpointName = keyof typeof ENDPOINTS;
export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as readonly EndpointName[];

/** Endpoints of the vendor's document that our data cannot answer. They have no route (decision 54). */
export const UNANSWERED = ['/coins/{coin_id}/twitter'] as const;
