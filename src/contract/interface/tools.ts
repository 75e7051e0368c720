/**
 * The 19 tools of the API document's section 4.2 as data: purpose, arguments with their defaults, and answer of each.
 * The API document does not define which arguments are required; here they are those of the real server (upstream-api.md, section 4).
 */
import { z } from 'zod';
import {
  coinDetailsSchema,
  coinEventsSchema,
  coinExchangesSchema,
  coinMarketsSchema,
  contractsSchema,
  exchangeMarketsSchema,
  personSchema,
  platformsSchema,
  priceConversionSchema,
  SEARCH_CATEGORIES,
  searchResultSchema,
  tagSchema,
  tagsSchema,
} from '../record/catalogue.ts';
import {
  coinsSchema,
  describeValue,
  exchangeSchema,
  exchangesSchema,
  globalSchema,
  tickerSchema,
  tickersSchema,
} from '../record/records.ts';
import { AMOUNT, isPrintable, MODIFIER_RULE, quotes as quotesOnRest, TAG_FIELDS } from './endpoint-parameters.ts';
import type { Invalid, Parsed } from './parameters.ts';

export const TOOL_LIMIT = { byDefault: 50, most: 250 } as const;

/** The error text after the argument's name: `is required`, or the rule. */
export const must = (rule: string) => ({
  error: (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is required' : rule),
});

const MAX_TEXT_LENGTH = 200;
export const text = (rule: string) =>
  z.string(must(rule)).trim().min(1, must(rule)).max(MAX_TEXT_LENGTH, must(rule)).refine(isPrintable, must(rule));

/** An id as given. An impossible id is not invalid but unknown: 404, as on REST (decision 55). */
const id = (rule: string) => z.string(must(rule)).trim().min(1, must(rule));

export const coinId = id('must be the id of a coin, such as "btc-bitcoin"').describe(
  'Id of the coin, such as btc-bitcoin.',
);

const currencyId = id('must be the id of a coin or a fiat currency, such as "btc-bitcoin" or "usd-us-dollars"');

/** A limit, which is floored and clamped instead of refused, as in the real server. */
export const limitOf = (
  { byDefault, most }: { readonly byDefault: number; readonly most: number },
  what = 'this many',
) =>
  z
    .number(must('must be a number'))
    .default(byDefault)
    .transform((value) => Math.min(most, Math.max(1, Math.floor(value))))
    .describe(`At most ${what}, from 1 to ${most}.`);

const limit = limitOf(TOOL_LIMIT);

const quotes = list('Currencies of the prices, separated by commas, at most three. Default USD.', quotesOnRest.parse);
const additionalFields = list(`Fields to include, separated by commas, of: ${TAG_FIELDS.join(', ')}.`, (given) =>
  oneOrMoreOf('additionalFields', TAG_FIELDS, given, []),
);
const categories = list(
  `What to look for, separated by commas, of: ${SEARCH_CATEGORIES.join(', ')}. Default all of them.`,
  (given) => oneOrMoreOf('categories', SEARCH_CATEGORIES, given, SEARCH_CATEGORIES),
);
/** True when only symbols are compared. The API document has `symbol`, the vendor's OpenAPI `symbol_search`. */
const modifier = list('"symbol": only currencies whose symbol is q.', (given): Parsed<boolean> => {
  if (!given) return { ok: true, value: false };
  if (given === 'symbol' || given === 'symbol_search') return { ok: true, value: true };
  return refused('modifier', MODIFIER_RULE, given);
});

/** The tools by name, in the order of the API document. */
export const TOOLS = {
  getGlobal: tool('Market overview', 'The whole market at a glance: capitalisation, volume, dominance.', globalSchema),
  getCoins: tool('List of coins', 'Coins by rank, with id, name and symbol.', coinsSchema, { limit }),
  getCoinById: tool('Coin', 'What is known about one coin: team, tags, links, contracts.', coinDetailsSchema, {
    coinId,
  }),
  getCoinEvents: tool('Events of a coin', 'Past and coming events around one coin.', coinEventsSchema, {
    coinId,
    limit,
  }),
  getCoinExchanges: tool('Exchanges of a coin', 'Where one coin is traded.', coinExchangesSchema, { coinId, limit }),
  getCoinMarkets: tool('Markets of a coin', 'The pairs one coin is traded in, with prices.', coinMarketsSchema, {
    coinId,
    quotes,
    limit,
  }),
  getTickers: tool('Tickers', 'Newest price, volume and capitalisation of active coins, by rank.', tickersSchema, {
    quotes,
    limit,
  }),
  getTickersById: tool('Ticker of a coin', 'Newest price, volume and capitalisation of one coin.', tickerSchema, {
    coinId,
    quotes,
  }),
  getPeopleById: tool('Person', 'One person of a coin’s team, with positions and links.', personSchema, {
    personId: id('must be the id of a person, such as "vitalik-buterin"').describe('Id of the person.'),
  }),
  getTags: tool('Tags', 'The tags that coins are sorted by.', tagsSchema, { additionalFields, limit }),
  getTagById: tool('Tag', 'One tag; with its coins when additionalFields names them.', tagSchema, {
    tagId: id('must be the id of a tag, such as "blockchain-service"').describe('Id of the tag.'),
    additionalFields,
  }),
  getExchanges: tool('Exchanges', 'Exchanges by rank, with volumes.', exchangesSchema, { quotes, limit }),
  getExchangeByID: tool('Exchange', 'One exchange, with volumes.', exchangeSchema, {
    exchangeId: exchangeId(),
    quotes,
  }),
  getExchangeMarkets: tool('Markets of an exchange', 'The pairs traded on one exchange.', exchangeMarketsSchema, {
    exchangeId: exchangeId(),
    quotes,
    limit,
  }),
  getPlatforms: tool('Platforms', 'Ids of the platforms that contracts live on.', platformsSchema, { limit }),
  getContracts: tool('Contracts', 'Contracts on one platform, each with its coin.', contractsSchema, {
    platformId: platformId(),
    limit,
  }),
  getTickerByContract: tool('Ticker by contract', 'Newest price of the coin behind a contract.', tickerSchema, {
    platformId: platformId(),
    contractAddress: contractAddress(),
  }),
  priceConverter: tool(
    'Price converter',
    'What an amount of one currency is worth in another.',
    priceConversionSchema,
    {
      baseCurrencyId: currencyId.describe('Id of the currency that is converted, such as btc-bitcoin.'),
      quoteCurrencyId: currencyId.describe('Id of the currency it is converted to, such as usd-us-dollars.'),
      amount: z
        .number(must('must be a number'))
        .min(0, must(AMOUNT.leastRule))
        .max(AMOUNT.most, must(AMOUNT.mostRule))
        .default(0)
        .describe('The amount of the first currency.'),
    },
  ),
  search: tool(
    'Search',
    'Finds currencies, exchanges, icos, people and tags by a part of their name.',
    searchResultSchema,
    {
      q: text('must be a text to look for').describe('What to look for.'),
      categories,
      modifier,
      limit: limit.describe(`At most this many of each category, from 1 to ${TOOL_LIMIT.most}.`),
    },
  ),
} as const;

export type ToolName = keyof typeof TOOLS;
export const TOOL_NAMES = Object.keys(TOOLS) as readonly ToolName[];

/** A tool with its parsed arguments: lists are split, defaults filled in, limits clamped. */
export type ToolCall = CallOf<typeof TOOLS>;

export type Tool = {
  readonly title: string;
  readonly description: string;
  readonly arguments: z.ZodObject;
  /** The decoded `result.content[0].text`. */
  readonly output: z.ZodType;
};
export type CallOf<T extends Readonly<Record<string, Tool>>> = {
  [N in keyof T & string]: { readonly name: N; readonly arguments: z.output<T[N]['arguments']> };
}[keyof T & string];

type CallRead<T extends Readonly<Record<string, Tool>>> =
  | { readonly kind: 'call'; readonly call: CallOf<T> }
  | { readonly kind: 'unknown tool' }
  /** `message` names the argument, the rule and the given value; `argument` is null when the arguments are not an object. */
  | { readonly kind: 'invalid'; readonly argument: string | null; readonly message: string };

/**
 * Parses a call of one of `tools`. A null counts as not given. Unknown arguments are ignored, because clients written for the
 * vendor's hosted server send a `rationale` with every call.
 */
export function readToolCall<T extends Readonly<Record<string, Tool>>>(
  tools: T,
  name: string,
  given: unknown,
): CallRead<T> {
  const called = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (called === undefined) return { kind: 'unknown tool' };
  const values = given ?? {};
  if (typeof values !== 'object' || Array.isArray(values)) {
    const message = `invalid parameters: arguments must be an object, got ${describeValue(values)}`;
    return { kind: 'invalid', argument: null, message };
  }
  const read = called.arguments.safeParse(
    Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)),
  );
  if (read.success) return { kind: 'call', call: { name, arguments: read.data } as CallOf<T> };
  const issue = read.error.issues[0]!;
  const argument = String(issue.path[0]);
  if (issue.code === 'custom' && issue.params?.isWhole) return { kind: 'invalid', argument, message: issue.message };
  const value = (values as Record<string, unknown>)[argument];
  const got = value === undefined || value === null ? '' : `, got ${describeValue(value)}`;
  return { kind: 'invalid', argument, message: `invalid parameters: ${argument} ${issue.message}${got}` };
}

/** Defines a tool. Only arguments without a default and without `optional()` are required. */
export function tool<O extends z.ZodType, A extends z.ZodRawShape = Record<never, never>>(
  title: string,
  description: string,
  output: O,
  shape?: A,
) {
  return { title, description, arguments: z.object((shape ?? {}) as A), output } as const;
}

function exchangeId() {
  return id('must be the id of an exchange, such as "binance"').describe('Id of the exchange.');
}

export function contractAddress() {
  return id('must be the address of a contract').describe('Address of the contract on that platform.');
}

export function platformId() {
  return id('must be the id of a platform, such as "eth-ethereum"').describe('Id of the platform.');
}

/** An optional text, parsed by `parse`. The message of `parse` is the whole message of a refusal. */
function list<T>(description: string, parse: (given: string | null) => Parsed<T>) {
  return z
    .string({ error: 'must be a string' })
    .optional()
    .transform((given, context) => {
      const parsed = parse(given ?? null);
      if (parsed.ok) return parsed.value;
      context.addIssue({ code: 'custom', message: parsed.message, params: { isWhole: true } });
      return z.NEVER;
    })
    .describe(description);
}

function oneOrMoreOf<T extends string>(
  name: string,
  known: readonly T[],
  given: string | null,
  byDefault: readonly T[],
): Parsed<readonly T[]> {
  const items = (given ?? '').split(',').map((item) => item.trim());
  if (items.every((item) => item === '')) return { ok: true, value: byDefault };
  const unknown = items.find((item) => !(known as readonly string[]).includes(item));
  if (unknown !== undefined) return refused(name, `must be one or more of ${known.join(', ')}`, unknown);
  return { ok: true, value: [...new Set(items)] as T[] };
}

function refused(name: string, rule: string, given: string): Invalid {
  return { ok: false, message: `invalid parameters: ${name} ${rule}, got ${describeValue(given)}`, parameter: name };
}
