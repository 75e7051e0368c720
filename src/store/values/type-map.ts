/** What Postgres' types are in TypeScript, said once for every connection: instants are numbers, ranges are spans. */
import type postgres from 'postgres';
import type { Span, Spans } from '../../core/span.ts';
import { arrayTypes, unlessText } from './array-types.ts';
import { readInstant, writeInstant } from './instant.ts';
import { parseMultirange, parseRange, toMultirange, toRange } from './multirange.ts';
import { storableJson } from './storable-text.ts';

/** What a value is here, where that differs from what postgres.js makes of it. Both ways: as a column, and as a parameter. */
type ValueTypes = {
  /** A number: every count here is far below 2^53. */
  readonly bigint: number;
  readonly tstzrange: Span;
  readonly tstzmultirange: Spans;
};

/**
 * A client for hand-written SQL. A `timestamptz` is an `Instant`; columns arrive in camelCase. Where Postgres cannot infer that a
 * parameter is an instant or a span (`${at} - interval '1 day'`), the statement says so: `${at}::timestamptz`.
 */
export type Sql = postgres.Sql<ValueTypes>;
/** What a store function needs: the client, or a transaction of it. */
export type SqlOrTransaction = postgres.ISql<ValueTypes>;

const typeOf = (oid: number, parse: (text: string) => unknown, write: (value: never) => string) => ({
  to: oid,
  from: [oid],
  parse,
  serialize: unlessText(write),
});

/** The numbers are fixed for ever in Postgres (pg_type.dat). */
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
