/**
 * The tools that only a warehouse has, besides the 19 of the API document: candles of any series at any depth, what is covered,
 * what is missing and why, the story of one candle or price, and SQL. A service offers them when it gets a `WarehouseTools`.
 */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { QUOTES, type Quote } from '../../core/candle.ts';
import { ALL_INTERVALS, INTERVALS, type Interval, type SeriesName } from '../../core/interval.ts';
import { candleRowSchema } from './hosted-tools.ts';
import { coinId, limitOf, must, tool } from './tools.ts';

export type SeriesQuestion = {
  /** Undefined: any. */
  readonly coinId?: string | undefined;
  readonly quote?: Quote | undefined;
  readonly interval?: Interval | undefined;
  /** Maximum number of rows. */
  readonly limit: number;
};

/** A series: how much of what is wanted has upstream's final answer, and when. Times RFC 3339; null: unbounded. */
const coverageRowSchema = z.object({
  coin_id: z.string(),
  symbol: z.string(),
  quote: z.string(),
  interval: z.string(),
  wanted_from: z.string().nullable(),
  wanted_to: z.string().nullable(),
  /** In candles, or in prices. */
  slots_wanted: z.number(),
  slots_covered: z.number(),
  slots_missing: z.number(),
  /** Of those missing: too young to be final. */
  slots_unsettled: z.number(),
  percent_complete: z.number(),
  /** `[from, to)`, ascending. */
  covered: z.array(z.object({ from: z.string().nullable(), to: z.string().nullable() })),
});
export type CoverageRow = z.output<typeof coverageRowSchema>;

/** A span that is wanted and not covered, and why. Times RFC 3339; null: unbounded. */
const gapRowSchema = z.object({
  coin_id: z.string(),
  symbol: z.string(),
  quote: z.string(),
  interval: z.string(),
  gap_from: z.string().nullable(),
  gap_to: z.string().nullable(),
  /** Missing candles, or prices. */
  slots: z.number(),
  reason: z.string(),
  detail: z.string().nullable(),
  next_ask_at: z.string().nullable(),
});
export type GapRow = z.output<typeof gapRowSchema>;

export type ExplainQuestion = SeriesName & {
  /** Any instant in the slot. */
  readonly at: Instant;
};

/** The story of one slot, in the order of time; what is there now and what comes next are the last events. Times RFC 3339. */
const slotStorySchema = z.object({
  coin_id: z.string(),
  quote: z.string(),
  interval: z.string(),
  time_open: z.string(),
  /** The last second of the slot. */
  time_close: z.string(),
  events: z.array(
    z.object({
      at: z.string(),
      /** One word, as `market.story` has it: wanted, final, revised, quarantined, refused, mended, now, next and others. */
      event: z.string(),
      /** Sentences. */
      detail: z.string(),
    }),
  ),
});
export type SlotStory = z.output<typeof slotStorySchema>;

/** Rows are lists, because two columns of a statement may have the same name. */
const sqlAnswerSchema = z.object({
  columns: z.array(z.string()),
  /** Numbers that a double holds exactly are numbers, JSON is JSON, and every other value is text as Postgres writes it. */
  rows: z.array(z.array(z.unknown())),
  /** There were more rows than the limit, or than an answer may hold. */
  truncated: z.boolean(),
});
export type SqlAnswer = z.output<typeof sqlAnswerSchema>;

/** Why a statement was not executed, for its author. Any other error of `runSql` is our defect. */
export class StatementError extends Error {
  override readonly name = 'StatementError';
  /** 429: too many statements at once. */
  readonly status: 400 | 429;

  constructor(message: string, status: 400 | 429 = 400) {
    super(message);
    this.status = status;
  }
}

export type SqlQuestion = {
  /** Who asks: of one caller one statement runs at a time. */
  readonly caller: string;
  readonly statement: string;
  readonly limit: number;
};

/** What a service over a warehouse needs besides `MarketData`. */
export type WarehouseTools = {
  /** Series in the order of coin, quote and interval. */
  coverage(question: SeriesQuestion): Promise<readonly CoverageRow[]>;
  /** In the order of coin, quote, interval and time. */
  gaps(question: SeriesQuestion): Promise<readonly GapRow[]>;
  explain(question: ExplainQuestion): Promise<SlotStory | 'no series' | 'not opened yet'>;
  /** Undefined: SQL is not offered. @throws StatementError when the statement is at fault */
  runSql?(question: SqlQuestion): Promise<SqlAnswer>;
};

const limit = limitOf({ byDefault: 100, most: 1_000 }, 'so many rows');
const quote = z.enum(QUOTES, must(`must be ${QUOTES.join(' or ')}`));
const OF_PRICES = 'of a price series prices- and its width, such as prices-1d';
const interval = z.enum(ALL_INTERVALS, must(`must be one of ${INTERVALS.join(' ')}, or ${OF_PRICES}`));
const series = {
  coinId: coinId.optional(),
  quote: quote.optional().describe('Currency of the prices. Default: any.'),
  interval: interval.optional().describe(`Width of the candles; ${OF_PRICES}. Default: any.`),
  limit,
};
/** As on the REST interface; parsed by `parseOhlcvParameters`. */
const ohlcvText = (description: string) => z.string(must('must be a string')).optional().describe(description);

const STATEMENT_RULE = 'must be one SQL statement';
/** Longest statement, in characters. */
const LONGEST_STATEMENT = 20_000;

export const WAREHOUSE_TOOLS = {
  getOHLCV: tool(
    'Candles',
    'Open, high, low, close, volume and market cap of a coin, ascending.',
    z.array(candleRowSchema),
    {
      coinId,
      start: z
        .string(must('must be a string'))
        .describe('First open time: a date (2018-02-15), an RFC 3339 time or unix seconds.'),
      end: ohlcvText('Last open time, included, at most a year after start. Default: as far as limit goes.'),
      interval: ohlcvText(`Width of a candle: ${INTERVALS.join(', ')}. Default 24h.`),
      quote: ohlcvText(`Currency of the prices: ${QUOTES.join(' or ')}. Default usd.`),
      limit: z
        .number(must('must be a number'))
        .optional()
        .describe('At most so many candles, from 1 to 366. Default: 366 with end, else 1.'),
    },
  ),
  getCoverage: tool(
    'Coverage',
    'How much of which series is complete, of candles and of prices.',
    z.array(coverageRowSchema),
    series,
  ),
  getGaps: tool('Gaps', 'Which candles and prices are missing, and why.', z.array(gapRowSchema), series),
  explainCandle: tool(
    'Story of a candle or a price',
    'Why one candle, or one price of a price series, is what it is: what made it final, revisions, what is there now, and when it is asked for next.',
    slotStorySchema,
    {
      coinId,
      interval: interval.describe(`Width of the candle; ${OF_PRICES}.`),
      time: z
        .string(must('must be a string'))
        .describe(
          'Any instant in the candle, or in the span of the price: a date (2018-02-15), an RFC 3339 time or unix seconds.',
        ),
      quote: quote.default('usd').describe('Currency of the prices. Default usd.'),
    },
  ),
  runSql: tool('SQL', 'Runs one reading SQL statement on the schema `market` (Postgres).', sqlAnswerSchema, {
    statement: z
      .string(must(STATEMENT_RULE))
      .min(1, must(STATEMENT_RULE))
      .max(LONGEST_STATEMENT, must(`must have at most ${LONGEST_STATEMENT} characters`))
      .describe(
        'One statement, such as: select * from market.candles limit 5. Prices are in market.prices. The views are described by their comments.',
      ),
    limit,
  }),
} as const;
