/** What the tables are made of: the two schemas, the types that drizzle lacks, and the columns that many tables share. */
import { bigint, customType, doublePrecision, integer, pgSchema } from 'drizzle-orm/pg-core';
import type { Instant } from '../../clock.ts';
import { INTERVALS } from '../../core/interval.ts';

export const market = pgSchema('market');
export const ops = pgSchema('ops');

export const candleInterval = market.enum('candle_interval', INTERVALS);

/** A `timestamptz` as milliseconds since 1970. The connection itself converts in both directions, so nothing is mapped here. */
export const instant = customType<{ data: Instant }>({ dataType: () => 'timestamp with time zone' });

/** Ranges as Postgres writes them; `multirange.ts` turns them into spans and back. */
export const tstzrange = customType<{ data: string }>({ dataType: () => 'tstzrange' });
export const tstzmultirange = customType<{ data: string }>({ dataType: () => 'tstzmultirange' });

export const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

/** A `bigint` as a number: every count here is far below 2^53. */
export const bigNumber = (name: string) => bigint(name, { mode: 'number' });

/** A number that Postgres gives out: `integer` where there are few rows, `bigint` where there are many. */
export const identity = (name: string) => integer(name).generatedAlwaysAsIdentity();
export const bigIdentity = (name: string) => bigNumber(name).generatedAlwaysAsIdentity();

/** The values of a candle; null where upstream says null. */
export const prices = () => ({
  open: doublePrecision('open'),
  high: doublePrecision('high'),
  low: doublePrecision('low'),
  close: doublePrecision('close'),
  volume: doublePrecision('volume'),
  marketCap: doublePrecision('market_cap'),
});
