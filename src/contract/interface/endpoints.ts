/**
 * The REST interface as data: each endpoint with its path below the base address, its parameters and what it answers. The service makes
 * its routes of this page, and the OpenAPI document is written from it, so neither can have what the other lacks.
 * Sources: API document, section 4.1; vendor's OpenAPI (upstream-api.md, section 1).
 */
import { z } from 'zod';
import { INTERVALS } from '../../core/interval.ts';
import { MAX_CANDLES } from '../plan/plans.ts';
import {
  coinDetailsSchema,
  coinEventsSchema,
  coinExchangesSchema,
  coinMarketsSchema,
  contractsSchema,
  exchangeMarketsSchema,
  historicalTicksSchema,
  idChangesSchema,
  personSchema,
  platformsSchema,
  priceConversionSchema,
  SEARCH_CATEGORIES,
  searchResultSchema,
  tagSchema,
  tagsSchema,
} from '../record/catalogue.ts';
import { legacyTickerSchema, legacyTickersSchema, simpleTickersSchema } from '../record/older-records.ts';
import {
  accountInfoSchema,
  coinsSchema,
  exchangeSchema,
  exchangesSchema,
  globalSchema,
  tickerSchema,
  tickersSchema,
} from '../record/records.ts';
import { SEARCH_LIMIT, TICKER_WIDTHS, TICKS } from './catalogue-parameters.ts';
import { TAG_FIELDS } from './tools.ts';

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description: string;
  /** As JSON Schema. */
  readonly schema: {
    readonly type: 'string' | 'integer' | 'number';
    readonly enum?: readonly string[];
    readonly default?: string | number;
    readonly minimum?: number;
    readonly maximum?: number;
    readonly example?: string | number;
  };
};

export type Endpoint = {
  readonly path: string;
  readonly group: 'Market' | 'Coins' | 'History' | 'Exchanges' | 'People and tags' | 'Contracts' | 'Tools' | 'Account';
  readonly summary: string;
  readonly parameters: readonly Parameter[];
  /** What a 200 carries; null where the answer is a redirect. */
  readonly answer: z.ZodType | null;
  /**
   * Statuses besides 200 (or 301), 402, 403, 429, 500 and 503, which any endpoint may have. `no route`: on the free plan there is none,
   * as on the upstream's free host.
   */
  readonly refusals: readonly (400 | 404 | 'no route')[];
  readonly deprecated?: true;
};

const id = (name: string, description: string, example: string): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string', example },
});
const asked = (name: string, description: string, schema: Parameter['schema'], required = false): Parameter => ({
  name,
  in: 'query',
  required,
  description,
  schema,
});

const coinId = id('coin_id', 'Id of the coin.', 'btc-bitcoin');
const exchangeId = id('exchange_id', 'Id of the exchange.', 'binance');
const tagId = id('tag_id', 'Id of the tag.', 'smart-contracts');
const platformId = id('platform_id', 'Id of the platform: that of its coin.', 'eth-ethereum');
const address = id(
  'contract_address',
  'Address of the contract; hexadecimal ones in any case.',
  '0xd26114cd6ee289accf82350c8d8487fedb8a0c07',
);

const quotes = asked('quotes', 'Currencies of the prices, separated by commas, at most three.', {
  type: 'string',
  default: 'USD',
  example: 'USD,BTC',
});
const quote = asked('quote', 'Currency of the prices, in any case.', {
  type: 'string',
  enum: ['usd', 'btc'],
  default: 'usd',
});
const FORMATS = 'A date (2018-02-15), an RFC 3339 time (2018-02-15T05:15:00Z) or Unix seconds (1518671700).';
const start = asked('start', `First instant asked for. ${FORMATS}`, { type: 'string', example: '2024-01-01' }, true);
const page = asked('page', 'Page of a hundred rows.', { type: 'integer', default: 1, minimum: 1 });
const additionalFields = asked(
  'additional_fields',
  `Lists to include, separated by commas: ${TAG_FIELDS.join(', ')}.`,
  {
    type: 'string',
    example: TAG_FIELDS.join(','),
  },
);

const candleParameters = [
  coinId,
  start,
  asked('end', `Last open time asked for, included; at most a year after start. ${FORMATS}`, { type: 'string' }),
  asked('limit', `At most so many candles, the earliest ones. Without end 1, with it ${MAX_CANDLES} by default.`, {
    type: 'integer',
    minimum: 1,
    maximum: MAX_CANDLES,
  }),
  asked('interval', 'Width of a candle.', { type: 'string', enum: INTERVALS, default: '24h' }),
  quote,
];
const tickParameters = [
  start,
  asked('end', `The instant it ends before. Default now. ${FORMATS}`, { type: 'string' }),
  asked('limit', 'At most so many rows, the earliest ones.', {
    type: 'integer',
    default: TICKS.byDefault,
    minimum: 1,
    maximum: TICKS.most,
  }),
  quote,
  asked('interval', 'Width of the stretch a row stands for.', {
    type: 'string',
    enum: Object.keys(TICKER_WIDTHS),
    default: '5m',
  }),
];

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

/** By the vendor's operation ids. An endpoint whose path is a special case of another's stands before it. */
export const ENDPOINTS = {
  getGlobal: of('/global', 'Market', 'The whole market at a glance', [], globalSchema),
  getTickers: of('/tickers', 'Market', 'Tickers of all active coins, by rank', [quotes], tickersSchema, [400]),
  getTickersSimple: of(
    '/tickers/simple',
    'Market',
    'Prices alone, a hundred coins to a page; not on the free plan',
    [quotes, page],
    simpleTickersSchema,
    [400, 'no route'],
  ),
  getTickersById: of('/tickers/{coin_id}', 'Market', 'Ticker of one coin', [coinId, quotes], tickerSchema, [400, 404]),
  getTickersHistoricalById: of(
    '/tickers/{coin_id}/historical',
    'History',
    'What a coin cost in each stretch of time; the end is not included',
    [coinId, ...tickParameters],
    historicalTicksSchema,
    [400, 404],
  ),
  getCoins: of('/coins', 'Coins', 'All coins, inactive ones too', [], coinsSchema),
  getCoinById: of('/coins/{coin_id}', 'Coins', 'What is known about a coin', [coinId], coinDetailsSchema, [404]),
  getCoinEvents: of('/coins/{coin_id}/events', 'Coins', 'Events around a coin', [coinId], coinEventsSchema, [404]),
  getCoinExchanges: of(
    '/coins/{coin_id}/exchanges',
    'Coins',
    'Where a coin is traded',
    [coinId],
    coinExchangesSchema,
    [404],
  ),
  getCoinMarkets: of(
    '/coins/{coin_id}/markets',
    'Coins',
    'The pairs a coin is traded in',
    [coinId, quotes],
    coinMarketsSchema,
    [400, 404],
  ),
  getCoinOHLCV: of(
    '/coins/{coin_id}/ohlcv',
    'History',
    'Candles of a coin: the same as below /historical',
    candleParameters,
    candlesSchema,
    [400],
  ),
  getCoinOHLCVHistorical: of(
    '/coins/{coin_id}/ohlcv/historical',
    'History',
    'Candles of a coin, both ends included, ascending; an unknown coin has none',
    candleParameters,
    candlesSchema,
    [400],
  ),
  getCoinOHLCVLatest: of(
    '/coins/{coin_id}/ohlcv/latest',
    'History',
    'The candle of the last full day, UTC',
    [coinId, quote],
    candlesSchema,
    [400],
  ),
  getCoinOHLCVToday: of(
    '/coins/{coin_id}/ohlcv/today',
    'History',
    'The candle of the day that is still open, UTC',
    [coinId, quote],
    candlesSchema,
    [400],
  ),
  getExchanges: of('/exchanges', 'Exchanges', 'All exchanges', [quotes], exchangesSchema, [400]),
  getExchangeByID: of(
    '/exchanges/{exchange_id}',
    'Exchanges',
    'One exchange',
    [exchangeId, quotes],
    exchangeSchema,
    [400, 404],
  ),
  getExchangeMarkets: of(
    '/exchanges/{exchange_id}/markets',
    'Exchanges',
    'The pairs traded on an exchange',
    [exchangeId, quotes],
    exchangeMarketsSchema,
    [400, 404],
  ),
  getPeopleById: of(
    '/people/{person_id}',
    'People and tags',
    'A person, with positions and links',
    [id('person_id', 'Id of the person.', 'vitalik-buterin')],
    personSchema,
    [404],
  ),
  getTags: of('/tags', 'People and tags', 'All tags', [additionalFields], tagsSchema, [400]),
  getTagById: of('/tags/{tag_id}', 'People and tags', 'One tag', [tagId, additionalFields], tagSchema, [400, 404]),
  getPlatforms: of('/contracts', 'Contracts', 'Ids of the coins that others live on', [], platformsSchema),
  getContracts: of(
    '/contracts/{platform_id}',
    'Contracts',
    'Contracts on a platform',
    [platformId],
    contractsSchema,
    [404],
  ),
  getTicker: of(
    '/contracts/{platform_id}/{contract_address}',
    'Contracts',
    'Leads to the ticker of the coin behind a contract',
    [platformId, address, quotes],
    null,
    [404],
  ),
  getHistoricalTicker: of(
    '/contracts/{platform_id}/{contract_address}/historical',
    'Contracts',
    'Leads to the ticker history of the coin behind a contract',
    [platformId, address, ...tickParameters],
    null,
    [404],
  ),
  search: of(
    '/search',
    'Tools',
    'Finds currencies, exchanges, icos, people and tags by a part of their name',
    [
      asked('q', 'What to look for.', { type: 'string', example: 'btc' }, true),
      asked('c', 'What kinds of things, separated by commas.', {
        type: 'string',
        default: SEARCH_CATEGORIES.join(','),
      }),
      asked('modifier', 'Only currencies whose symbol is q.', { type: 'string', enum: ['symbol_search', 'symbol'] }),
      asked('limit', 'At most so many of each kind.', {
        type: 'integer',
        default: SEARCH_LIMIT.byDefault,
        minimum: 1,
        maximum: SEARCH_LIMIT.most,
      }),
    ],
    searchResultSchema,
    [400],
  ),
  priceConverter: of(
    '/price-converter',
    'Tools',
    'What an amount of one currency is worth in another',
    [
      asked('base_currency_id', 'What is converted.', { type: 'string', example: 'btc-bitcoin' }, true),
      asked('quote_currency_id', 'What it is converted to.', { type: 'string', example: 'usd-us-dollars' }, true),
      asked('amount', 'How much of the first.', { type: 'number', default: 0, minimum: 0 }),
    ],
    priceConversionSchema,
    [400, 404],
  ),
  getChangelogIDs: of(
    '/changelog/ids',
    'Coins',
    'Coins that got another id, the newest change first; not on the free plan',
    [page],
    idChangesSchema,
    [400],
  ),
  getUser: of('/users/me', 'Account', 'What the holder of the key may do, and has done', [], accountInfoSchema),
  getKeyInfo: of('/key/info', 'Account', 'The same as /users/me', [], accountInfoSchema),
  getTickersDeprecated: old(
    '/ticker',
    'Tickers in their older form: texts instead of numbers',
    [],
    legacyTickersSchema,
  ),
  getTickerByIdDeprecated: old(
    '/ticker/{coin_id}',
    'Ticker of one coin in its older form',
    [coinId],
    legacyTickerSchema,
    [404],
  ),
} as const satisfies Readonly<Record<string, Endpoint>>;

export type EndpointName = keyof typeof ENDPOINTS;
export const ENDPOINT_NAMES = Object.keys(ENDPOINTS) as readonly EndpointName[];

/** What the vendor's document has and our data cannot answer: no such route (decision 54). */
export const UNANSWERED = ['/coins/mappings', '/coins/{coin_id}/twitter'] as const;

function of(
  path: string,
  group: Endpoint['group'],
  summary: string,
  parameters: readonly Parameter[],
  answer: z.ZodType | null,
  refusals: Endpoint['refusals'] = [],
): Endpoint {
  return { path, group, summary, parameters, answer, refusals };
}

function old(
  path: string,
  summary: string,
  parameters: readonly Parameter[],
  answer: z.ZodType,
  refusals: Endpoint['refusals'] = [],
): Endpoint {
  return { ...of(path, 'Market', summary, parameters, answer, refusals), deprecated: true };
}
