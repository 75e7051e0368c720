/** The parts of the tables: the two schemas, the types that drizzle lacks, and the columns that many tables share. */
import { bigint, customType, doublePrecision, integer, pgSchema } from 'drizzle-orm/pg-core';
import type { Instant } from '../../clock.ts';
import { INTERVALS, PRICE_INTERVALS } from '../../core/interval.ts';
import type { Span, Spans } from '../../core/span.ts';

export const market = pgSchema('market');
export const ops = pgSchema('ops');

export const candleInterval = market.enum('candle_interval', [...INTERVALS, ...PRICE_INTERVALS]);

// The type map of the connection reads and writes the values of these types.

/** A `timestamptz` as milliseconds since 1970. */
export const instant = customType<{ data: Instant }>({ dataType: () => 'timestamp with time zone' });
export const tstzrange = customType<{ data: Span }>({ dataType: () => 'tstzrange' });
export const tstzmultirange = customType<{ data: Spans }>({ dataType: () => 'tstzmultirange' });

/** Any JSON value. A string is taken for text that is already JSON. */
export const jsonb = customType<{ data: unknown }>({ dataType: () => 'jsonb' });

export const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

/** A `bigint` as a number: every count here is far below 2^53. */
export const bigNumber = (name: string) => bigint(name, { mode: 'number' });

/** A number that Postgres generates: `integer` for tables with few rows, `bigint` for tables with many. */
export const identity = (name: string) => integer(name).generatedAlwaysAsIdentity();
export const bigIdentity = (name: string) => bigNumber(name).generatedAlwaysAsIdentity();

/** The values of a candle. Null where upstream sends null. */
export const prices = () => ({
  open: doublePrecision('open'),
  high: doublePrecision('high'),
  low: doublePrecision('low'),
  close: doublePrecision('close'),
  volume: doublePrecision('volume'),
  marketCap: doublePrecision('market_cap'),
});
