/** The parameters of the REST endpoints. The OpenAPI document and the parsers of requests use the same entries. */
import type { Instant } from '../../clock.ts';
import { isQuote, QUOTES, type Quote } from '../../core/candle.ts';
import { ceilToGrid, DAY, INTERVAL_MS, INTERVALS, type PriceWidth, priceInterval } from '../../core/interval.ts';
import { TOO_MANY_QUOTES } from '../answer/errors.ts';
import { MAX_CANDLES, resolutionOf, type TickerResolution } from '../plan/plans.ts';
import { SEARCH_CATEGORIES } from '../record/catalogue.ts';
import { FIATS } from '../record/fiats.ts';
import type { OhlcvQuery, SearchQuery, TickerHistoryQuery } from '../record/market-data.ts';
import {
  countTo,
  invalid,
  listOf,
  ok,
  oneOf,
  optional,
  type Parameter,
  type Parsed,
  parseInstant,
  parseQuery,
  required,
} from './parameters.ts';

/** The parameters in paths, each with its description and an example. */
const PATH_PARAMETERS: Readonly<Record<string, readonly [description: string, example: string]>> = {
  coin_id: ['Id of the coin.', 'btc-bitcoin'],
  exchange_id: ['Id of the exchange.', 'binance'],
  person_id: ['Id of the person.', 'vitalik-buterin'],
  tag_id: ['Id of the tag.', 'smart-contracts'],
  platform_id: ['Id of the platform: that of its coin.', 'eth-ethereum'],
  contract_address: [
    'Address of the contract; hexadecimal ones in any case.',
    '0xd26114cd6ee289accf82350c8d8487fedb8a0c07',
  ],
};

export function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const [description, example] = PATH_PARAMETERS[name!]!;
    return { name: name!, in: 'path', required: true, description, schema: { type: 'string', example } };
  });
}

/** The currencies of tickers and exchanges (upstream-api.md, 1.4). */
const TICKER_QUOTES: readonly string[] = ['BTC', 'ETH', ...FIATS.map(({ symbol }) => symbol)];

/** At most three of `TICKER_QUOTES`, upper-case, each once. */
export const quotes = optional<readonly string[], readonly string[]>(
  'quotes',
  'Currencies of the prices, separated by commas, at most three.',
  { type: 'string', default: 'USD', example: 'USD,BTC' },
  ['USD'],
  (text) => {
    const given = [...new Set(text.split(',').map((one) => one.trim().toUpperCase()))];
    if (given.length > 3) return { ok: false, message: TOO_MANY_QUOTES, parameter: 'quotes' };
    const unknown = given.find((one) => !TICKER_QUOTES.includes(one));
    return unknown === undefined
      ? ok(given)
      : invalid('quotes', `must be one or more of ${TICKER_QUOTES.join(' ')}`, unknown);
  },
);
export const quote = optional<Quote, Quote>(
  'quote',
  'Currency of the prices, in any case.',
  { type: 'string', enum: QUOTES, default: 'usd' },
  'usd',
  (text) => {
    const lower = text.toLowerCase();
    return isQuote(lower) ? ok(lower) : invalid('quote', `must be ${QUOTES.join(' or ')}`, text);
  },
);
/** Rows of a page of `/changelog/ids` and `/tickers/simple`. */
export const PAGE_ROWS = 100;
const LAST_PAGE = 1_000_000;
const PAGE_SCHEMA = { type: 'integer', default: 1, minimum: 1 } as const;
export const page = optional('page', 'Page of a hundred rows.', PAGE_SCHEMA, 1, countTo(LAST_PAGE));

/** The lists of a tag that are sent only when they are named. */
export const TAG_FIELDS = ['coins', 'icos'] as const;
export type TagField = (typeof TAG_FIELDS)[number];
export const additionalFields = optional(
  'additional_fields',
  `Lists to include, separated by commas: ${TAG_FIELDS.join(', ')}.`,
  { type: 'string', example: TAG_FIELDS.join(',') },
  [],
  listOf(TAG_FIELDS),
);

const FORMATS = 'A date (2018-02-15), an RFC 3339 time (2018-02-15T05:15:00Z) or Unix seconds (1518671700).';
/** `NOW` as an end: replaced by the time of the clock when the query is answered. */
const NOW = Number.POSITIVE_INFINITY;
const start = required('start', `First instant. ${FORMATS}`, '2024-01-01', parseInstant);
const end = (description: string) =>
  optional('end', `${description} ${FORMATS} Or NOW.`, { type: 'string' }, null, (text) =>
    /^now$/i.test(text) ? ok(NOW) : parseInstant(text, 'end'),
  );
const limit = <D extends number | null>(description: string, byDefault: D, most: number) => {
  const standard = byDefault === null ? {} : { default: byDefault };
  return optional(
    'limit',
    description,
    { type: 'integer', ...standard, minimum: 1, maximum: most },
    byDefault,
    countTo(most),
  );
};

/** The longest range is one year: the 366 days of a leap year, from the first to the last instant (decision 5). */
const MAX_RANGE_MS = 366 * DAY;
const candles = {
  start,
  end: end('Last open time, included; at most a year after start.'),
  // The default depends on whether there is an `end` (decision 3).
  limit: limit(
    `Maximum number of candles, the earliest ones. Default 1 without end, ${MAX_CANDLES} with it.`,
    null,
    MAX_CANDLES,
  ),
  interval: oneOf('interval', 'Width of a candle.', INTERVALS, '24h'),
  quote,
};
export const candleParameters = Object.values(candles);

/** `start` as given, before it is aligned to the grid: the plan's history limit applies to this one. */
type OhlcvParameters = Omit<OhlcvQuery, 'coinId'> & { readonly start: Instant };

/** The query of `/coins/{id}/ohlcv/historical` (decisions 1 to 5). */
export function parseOhlcvParameters(query: URLSearchParams, now: Instant): Parsed<OhlcvParameters> {
  const read = parseQuery(query, candles);
  if (!read.ok) return read;
  const { start, interval, quote } = read.value;
  const end = read.value.end === NOW ? now : read.value.end;
  const limit = read.value.limit ?? (end === null ? 1 : MAX_CANDLES);
  const from = ceilToGrid(start, interval);
  if (end === null) return ok({ start, from, to: from + (limit - 1) * INTERVAL_MS[interval], limit, interval, quote });
  if (end < start) return invalid('end', END_BEFORE_START, query.get('end'));
  if (end - start > MAX_RANGE_MS) return invalid('end', 'must be at most one year after start', query.get('end'));
  return ok({ start, from, to: end, limit, interval, quote });
}

const END_BEFORE_START = 'must not be before start';

/** Widths of the slots of a ticker history, in the upstream's spelling; 24h is the same as 1d (upstream-api.md, 1.7). */
const TICKER_WIDTHS = [
  '5m',
  '10m',
  '15m',
  '30m',
  '45m',
  '1h',
  '2h',
  '3h',
  '6h',
  '12h',
  '24h',
  '1d',
  '7d',
  '14d',
  '30d',
  '90d',
  '365d',
] as const satisfies readonly (PriceWidth | '24h')[];

const ticks = {
  start,
  end: end('The instant before which the history ends. Default now.'),
  limit: limit('Maximum number of rows, the earliest ones.', 1_000, 5_000),
  quote,
  interval: oneOf('interval', 'Width of the span that a row stands for.', TICKER_WIDTHS, '5m'),
};
export const tickParameters = Object.values(ticks);

type TickerHistoryParameters = Omit<TickerHistoryQuery, 'coinId'> & {
  /** `start` as given, before it is aligned to the grid: the plan's history limit applies to this one. */
  readonly start: Instant;
  readonly resolution: TickerResolution;
};

/** The query of `/tickers/{id}/historical`. */
export function parseTickerHistoryParameters(query: URLSearchParams, now: Instant): Parsed<TickerHistoryParameters> {
  const read = parseQuery(query, ticks);
  if (!read.ok) return read;
  const { start, interval, quote, limit } = read.value;
  const end = read.value.end === NOW ? now : read.value.end;
  if (end !== null && end < start) return invalid('end', END_BEFORE_START, query.get('end'));
  const widthMs = INTERVAL_MS[priceInterval(interval === '24h' ? '1d' : interval)];
  const resolution = resolutionOf(widthMs);
  return ok({ start, resolution, quote, from: Math.ceil(start / widthMs) * widthMs, to: end ?? now, widthMs, limit });
}

const MAX_TEXT_LENGTH = 200;
export const MODIFIER_RULE = 'must be symbol or symbol_search';
const search = {
  q: required('q', 'The text to look for.', 'btc', (text) => {
    const q = text.trim();
    if (q === '') return invalid('q', 'is required', null);
    if (q.length <= MAX_TEXT_LENGTH && isPrintable(q)) return ok(q);
    return invalid('q', `must be a text of at most ${MAX_TEXT_LENGTH} characters`, q);
  }),
  categories: optional(
    'c',
    'Categories, separated by commas.',
    { type: 'string', default: SEARCH_CATEGORIES.join(',') },
    [],
    listOf(SEARCH_CATEGORIES),
  ),
  /** The vendor's OpenAPI says `symbol_search`, the API document `symbol`. */
  symbolOnly: optional(
    'modifier',
    'Only currencies whose symbol is q.',
    { type: 'string', enum: ['symbol_search', 'symbol'] },
    false,
    (text) => (/^symbol(_search)?$/.test(text) ? ok(true) : invalid('modifier', MODIFIER_RULE, text)),
  ),
  limit: limit('Maximum number of results in each category.', 6, 250),
};
export const searchParameters = Object.values(search);

/** False for texts with control characters or lone surrogates: no name has them, and Postgres does not accept all of them. */
export function isPrintable(text: string): boolean {
  return /^[^\p{Cc}\p{Cs}]*$/u.test(text);
}

/** The query of `/search`. */
export function parseSearchParameters(query: URLSearchParams): Parsed<SearchQuery> {
  const read = parseQuery(query, search);
  if (!read.ok) return read;
  const { categories, ...rest } = read.value;
  return ok({ ...rest, categories: categories.length === 0 ? SEARCH_CATEGORIES : categories });
}

/** The amount of the price converter. A larger amount times a price might not be finite. */
export const AMOUNT = {
  most: 1e100,
  leastRule: 'must be a number of at least 0',
  mostRule: 'must be at most 1e100',
} as const;
const conversion = {
  baseId: required('base_currency_id', 'The currency to convert from.', 'btc-bitcoin', ok),
  quoteId: required('quote_currency_id', 'The currency to convert to.', 'usd-us-dollars', ok),
  amount: optional(
    'amount',
    'The amount of the first currency.',
    { type: 'number', default: 0, minimum: 0 },
    0,
    (text) => {
      if (!/^\+?\d{1,30}(\.\d{1,30})?(e[+-]?\d{1,3})?$/i.test(text)) return invalid('amount', AMOUNT.leastRule, text);
      return Number(text) <= AMOUNT.most ? ok(Number(text)) : invalid('amount', AMOUNT.mostRule, text);
    },
  ),
};
export const conversionParameters = Object.values(conversion);

/** The query of `/price-converter`. */
export function parseConversionParameters(
  query: URLSearchParams,
): Parsed<{ readonly baseId: string; readonly quoteId: string; readonly amount: number }> {
  return parseQuery(query, conversion);
}
