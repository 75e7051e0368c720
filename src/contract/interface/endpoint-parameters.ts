/** The parameters of the REST endpoints as data, for the OpenAPI document. `parameters.ts` and `catalogue-parameters.ts` parse them. */
import { INTERVALS } from '../../core/interval.ts';
import { MAX_CANDLES } from '../plan/plans.ts';
import { SEARCH_CATEGORIES } from '../record/catalogue.ts';
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

/** The parameters in paths: what each is the id of, and an example. */
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

function optional(name: string, description: string, schema: Parameter['schema']): Parameter {
  return { name, in: 'query', required: false, description, schema };
}

function required(name: string, description: string, schema: Parameter['schema']): Parameter {
  return { ...optional(name, description, schema), required: true };
}

export const quotes = optional('quotes', 'Currencies of the prices, separated by commas, at most three.', {
  type: 'string',
  default: 'USD',
  example: 'USD,BTC',
});
export const quote = optional('quote', 'Currency of the prices, in any case.', {
  type: 'string',
  enum: ['usd', 'btc'],
  default: 'usd',
});
const FORMATS = 'A date (2018-02-15), an RFC 3339 time (2018-02-15T05:15:00Z) or Unix seconds (1518671700).';
const start = required('start', `First instant. ${FORMATS}`, { type: 'string', example: '2024-01-01' });
export const page = optional('page', 'Page of a hundred rows.', { type: 'integer', default: 1, minimum: 1 });
export const additionalFields = optional(
  'additional_fields',
  `Lists to include, separated by commas: ${TAG_FIELDS.join(', ')}.`,
  { type: 'string', example: TAG_FIELDS.join(',') },
);

export const candleParameters = [
  start,
  optional('end', `Last open time, included; at most a year after start. ${FORMATS}`, { type: 'string' }),
  optional('limit', `Maximum number of candles, the earliest ones. Default 1 without end, ${MAX_CANDLES} with it.`, {
    type: 'integer',
    minimum: 1,
    maximum: MAX_CANDLES,
  }),
  optional('interval', 'Width of a candle.', { type: 'string', enum: INTERVALS, default: '24h' }),
  quote,
];
export const tickParameters = [
  start,
  optional('end', `The instant before which the history ends. Default now. ${FORMATS}`, { type: 'string' }),
  optional('limit', 'Maximum number of rows, the earliest ones.', {
    type: 'integer',
    default: TICKS.byDefault,
    minimum: 1,
    maximum: TICKS.most,
  }),
  quote,
  optional('interval', 'Width of the span that a row stands for.', {
    type: 'string',
    enum: Object.keys(TICKER_WIDTHS),
    default: '5m',
  }),
];
export const searchParameters = [
  required('q', 'The text to look for.', { type: 'string', example: 'btc' }),
  optional('c', 'Categories, separated by commas.', { type: 'string', default: SEARCH_CATEGORIES.join(',') }),
  optional('modifier', 'Only currencies whose symbol is q.', { type: 'string', enum: ['symbol_search', 'symbol'] }),
  optional('limit', 'Maximum number of results in each category.', {
    type: 'integer',
    default: SEARCH_LIMIT.byDefault,
    minimum: 1,
    maximum: SEARCH_LIMIT.most,
  }),
];
export const conversionParameters = [
  required('base_currency_id', 'The currency to convert from.', { type: 'string', example: 'btc-bitcoin' }),
  required('quote_currency_id', 'The currency to convert to.', { type: 'string', example: 'usd-us-dollars' }),
  optional('amount', 'How much of the first.', { type: 'number', default: 0, minimum: 0 }),
];
