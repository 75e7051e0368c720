/**
 * The tools of the vendor's hosted server that the API document does not name (upstream-api.md, section 4). Clients that were written for that
 * server find all its tools here. A tool answers the same as REST if REST has the same query.
 */
import { z } from 'zod';
import { QUOTES } from '../../core/candle.ts';
import { INTERVALS } from '../../core/interval.ts';
import { coinMappingSchema, historicalTicksSchema, type IdProvider, idChangesSchema } from '../record/catalogue.ts';
import { accountInfoSchema } from '../record/records.ts';
import { coinId, contractAddress, limitOf, must, platformId, TOOL_LIMIT, text, tool } from './tools.ts';

/** A row with one candle; times are RFC 3339. */
const number = z.number().nullable();
export const candleRowSchema = z.object({
  time_open: z.string(),
  time_close: z.string(),
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number,
  market_cap: number,
});

/** A text that is parsed like the REST parameter of the same name. */
export const asOnRest = (description: string) => z.string(must('must be a string')).optional().describe(description);
const START = 'First instant: a date (2018-02-15), an RFC 3339 time or unix seconds.';
const start = z.string(must('must be a string')).describe(START);
const quote = asOnRest(`Currency of the prices: ${QUOTES.join(' or ')}. Default usd.`);
const limit = limitOf(TOOL_LIMIT, 'this many rows');
const history = {
  start,
  end: asOnRest('The instant before which the history ends. Default now.'),
  limit,
  quote,
  interval: asOnRest('Width of the span that a row stands for, such as 5m, 1h or 1d. Default 5m.'),
};

/** Exactly one of these must be given; `oneMapping` checks it. */
const idAt = (provider: IdProvider, example: string) =>
  z.string(must('must be a string')).optional().describe(`The coin by its id at ${provider}, such as ${example}.`);

/** The kinds of ids that `resolveId` finds, each with its category of `search`. */
export const RESOLVED = { coin: 'currencies', exchange: 'exchanges', people: 'people', tags: 'tags' } as const;

export const HOSTED_TOOLS = {
  status: tool(
    'Status',
    'Whether the server answers, and which one it is.',
    z.object({ status: z.string(), server: z.string(), version: z.string(), time: z.string() }),
  ),
  getCoinOHLCVLatest: tool(
    'Last full day',
    'The candle of the last full day of a coin, UTC.',
    z.array(candleRowSchema),
    {
      coinId,
      quote,
    },
  ),
  getCoinOHLCVToday: tool('Open day', 'The candle of the day that is still open, UTC.', z.array(candleRowSchema), {
    coinId,
    quote,
  }),
  getCoinOHLCVHistorical: tool(
    'Candles of a coin',
    'Open, high, low, close, volume and market cap, ascending.',
    z.array(candleRowSchema),
    {
      coinId,
      start,
      end: asOnRest('Last open time, included, at most a year after start. Default: as far as limit goes.'),
      interval: asOnRest(`Width of a candle: ${INTERVALS.join(', ')}. Default 24h.`),
      quote,
      limit,
    },
  ),
  getTickersHistoricalById: tool(
    'Price history of a coin',
    'Price, volume and market cap, ascending.',
    historicalTicksSchema,
    {
      coinId,
      ...history,
    },
  ),
  getHistoricalTickerByContract: tool(
    'Price history by contract',
    'Price, volume and market cap of the coin behind a contract, ascending.',
    historicalTicksSchema,
    { platformId: platformId(), contractAddress: contractAddress(), ...history },
  ),
  resolveId: tool(
    'Find an id',
    'Ids of coins, exchanges, people or tags by a part of their name.',
    z.object({
      type: z.string(),
      query: z.string(),
      matches: z.array(z.looseObject({ id: z.string(), name: z.string() })),
    }),
    {
      type: z
        .enum(Object.keys(RESOLVED) as [keyof typeof RESOLVED], must('must be coin, exchange, people or tags'))
        .describe('What the id is of: coin, exchange, people or tags.'),
      query: text('must be a text to look for').describe('A part of a name or symbol.'),
    },
  ),
  keyInfo: tool('Key', 'The plan of the key, its limits and its usage.', accountInfoSchema),
  getMappings: tool(
    'Mappings',
    'Ids of a coin at other providers, found by any one of them; an unknown id is empty.',
    coinMappingSchema,
    {
      coinpaprika: idAt('coinpaprika', 'btc-bitcoin'),
      coinmarketcap: idAt('coinmarketcap', '1'),
      coingecko: idAt('coingecko', 'bitcoin'),
      cryptocompare: idAt('cryptocompare', '1182'),
      isin: idAt('isin', 'XTV15WLZJMF0'),
      dti: idAt('dti', 'V15WLZJMF'),
    },
  ),
  getChangelogIDs: tool('Changed ids', 'Coins that got another id, the newest change first.', idChangesSchema, {
    page: z
      .number(must('must be a number'))
      .int(must('must be a whole number'))
      .min(1, must('must be at least 1'))
      .default(1),
  }),
  getCapabilities: tool(
    'Capabilities',
    'The tools of this server, and what the caller’s plan may read.',
    z.object({
      server: z.string(),
      version: z.string(),
      plan: z.string(),
      intervals: z.array(z.string()),
      history_days: z.number().nullable(),
      tools: z.array(z.string()),
    }),
  ),
  submitFeedback: tool('Feedback', 'This server collects none: tell its operator.', z.looseObject({})),
} as const;
