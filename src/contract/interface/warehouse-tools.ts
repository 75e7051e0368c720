/**
 * The tools that only a warehouse has, besides the 19 of the API document: candles of any series at any depth, coverage,
 * gaps and their reasons, the story of one candle or price, and SQL. A service offers them if it gets a `WarehouseTools`.
 */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { QUOTES, type Quote } from '../../core/candle.ts';
import { ALL_INTERVALS, INTERVALS, type Interval, type SeriesName } from '../../core/interval.ts';
import { asOnRest, candleRowSchema } from './hosted-tools.ts';
import { coinId, limitOf, must, tool } from './tools.ts';

export type SeriesQuestion = {
  /** Undefined means any, here and in the next two fields. */
  readonly coinId?: string | undefined;
  readonly quote?: Quote | undefined;
  readonly interval?: Interval | undefined;
  /** Maximum number of rows. */
  readonly limit: number;
};

/** A series: how many of the wanted slots have the upstream's final answer, and which. Times are RFC 3339; null means unbounded. */
const coverageRowSchema = z.object({
  coin_id: z.string(),
  symbol: z.string(),
  quote: z.string(),
  interval: z.string(),
  wanted_from: z.string().nullable(),
  wanted_to: z.string().nullable(),
  /** The numbers of slots are numbers of candles, or of prices. */
  slots_wanted: z.number(),
  slots_covered: z.number(),
  slots_missing: z.number(),
  /** The part of `slots_missing` that is too young to be final. */
  slots_unsettled: z.number(),
  percent_complete: z.number(),
  /** `[from, to)`, ascending. */
  covered: z.array(z.object({ from: z.string().nullable(), to: z.string().nullable() })),
});
export type CoverageRow = z.output<typeof coverageRowSchema>;

/** A span that is wanted and not covered, and why. Times are RFC 3339; null means unbounded. */
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

/**
 * The story of one slot: events in order of time. The last ones say what is stored now, and what Chandler requests next. Times are RFC 3339.
 */
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
      /** One word from `market.story`: wanted, final, revised, quarantined, refused, mended, now, next and others. */
      event: z.string(),
      /** One or more sentences. */
      detail: z.string(),
    }),
  ),
});
export type SlotStory = z.output<typeof slotStorySchema>;

/** Rows are lists, because two columns of a statement may have the same name. */
const sqlAnswerSchema = z.object({
  columns: z.array(z.string()),
  /** Numbers that a double stores exactly are numbers, JSON is JSON, and every other value is the text that Postgres writes. */
  rows: z.array(z.array(z.unknown())),
  /** True when there were more rows than the limit, or than an answer may contain. */
  truncated: z.boolean(),
});
export type SqlAnswer = z.output<typeof sqlAnswerSchema>;

/** Tells the author of a statement why it was not executed. Any other error of `runSql` is a defect of Chandler. */
export class StatementError extends Error {
  override readonly name = 'StatementError';
  /** 429 for too many statements at once; else 400. */
  readonly status: 400 | 429;

  constructor(message: string, status: 400 | 429 = 400) {
    super(message);
    this.status = status;
  }
}

type SqlQuestion = {
  /** The caller. Only one statement of each caller runs at a time. */
  readonly caller: string;
  readonly statement: string;
  readonly limit: number;
};

/** The interface that a service over a warehouse needs besides `MarketData`. */
export type WarehouseTools = {
  /** Series in the order of coin, quote and interval. */
  coverage(question: SeriesQuestion): Promise<readonly CoverageRow[]>;
  /** Gaps in the order of coin, quote, interval and time. */
  gaps(question: SeriesQuestion): Promise<readonly GapRow[]>;
  explain(question: ExplainQuestion): Promise<SlotStory | 'no series' | 'not opened yet'>;
  /** Undefined when SQL is not offered. @throws StatementError when the statement is the cause */
  runSql?(question: SqlQuestion): Promise<SqlAnswer>;
};

const limit = limitOf({ byDefault: 100, most: 1_000 }, 'this many rows');
const quote = z.enum(QUOTES, must(`must be ${QUOTES.join(' or ')}`));
const OF_PRICES = 'of a price series prices- and its width, such as prices-1d';
const interval = z.enum(ALL_INTERVALS, must(`must be one of ${INTERVALS.join(' ')}, or ${OF_PRICES}`));
const series = {
  coinId: coinId.optional(),
  quote: quote.optional().describe('Currency of the prices. Default: any.'),
  interval: interval.optional().describe(`Width of the candles; ${OF_PRICES}. Default: any.`),
  limit,
};

const STATEMENT_RULE = 'must be one SQL statement';
/** The most characters of a statement. */
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
      end: asOnRest('Last open time, included, at most a year after start. Default: as far as limit goes.'),
      interval: asOnRest(`Width of a candle: ${INTERVALS.join(', ')}. Default 24h.`),
      quote: asOnRest(`Currency of the prices: ${QUOTES.join(' or ')}. Default usd.`),
      limit: z
        .number(must('must be a number'))
        .optional()
        .describe('At most this many candles, from 1 to 366. Default: 366 with end, else 1.'),
    },
  ),
  getCoverage: tool(
    'Coverage',
    'How complete each series of candles and of prices is.',
    z.array(coverageRowSchema),
    series,
  ),
  getGaps: tool('Gaps', 'Which candles and prices are missing, and why.', z.array(gapRowSchema), series),
  explainCandle: tool(
    'History of a candle or a price',
    'Why one candle, or one price of a price series, has its values: what made it final, its revisions, what is stored now, and when Chandler requests it next.',
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
