/** Maps the types of Postgres to TypeScript, once for all connections: instants are numbers, ranges are spans. */
import type postgres from 'postgres';
import type { Span, Spans } from '../../core/span.ts';
import { arrayTypes, unlessText } from './array-types.ts';
import { readInstant, writeInstant } from './instant.ts';
import { parseMultirange, parseRange, toMultirange, toRange } from './multirange.ts';
import { storableJson } from './storable-text.ts';

/** The types that differ from those of postgres.js, for columns and for parameters. */
type ValueTypes = {
  /** A number: every count here is far below 2^53. */
  readonly bigint: number;
  readonly tstzrange: Span;
  readonly tstzmultirange: Spans;
};

/**
 * A client for hand-written SQL. A `timestamptz` is an `Instant`; columns arrive in camelCase. If Postgres cannot infer that a
 * parameter is an instant or a span (`${at} - interval '1 day'`), the statement must cast it: `${at}::timestamptz`.
 */
export type Sql = postgres.Sql<ValueTypes>;
/** The argument of a store function: a client, or one of its transactions. */
export type SqlOrTransaction = postgres.ISql<ValueTypes>;

const typeOf = (oid: number, parse: (text: string) => unknown, write: (value: never) => string) => ({
  to: oid,
  from: [oid],
  parse,
  serialize: unlessText(write),
});

/** These type ids never change in Postgres (pg_type.dat). */
export const TYPE_MAP = {
  bigint: typeOf(20, Number, String),
  timestamptz: typeOf(1184, readInstant, writeInstant),
  tstzrange: typeOf(3910, parseRange, toRange),
  tstzmultirange: typeOf(4534, parseMultirange, toMultirange),
  json: {
    to: 114,
    from: [114, 3802],
    parse: JSON.parse as (text: string) => unknown,
    serialize: unlessText(storableJson),
  },
  ...arrayTypes,
};
