/**
 * The array types that our statements use, defined in advance. Otherwise postgres.js would read all array types on each new connection,
 * and if the connection is lost during that query, the error is thrown where nobody can catch it.
 */
import type { Span } from '../../core/span.ts';
import { readInstant, writeInstant } from './instant.ts';
import { parseRange, toRange } from './multirange.ts';

type ArrayType = {
  readonly to: number;
  readonly from: number[];
  readonly serialize: (value: unknown) => string;
  readonly parse: (text: string) => unknown[];
};

type Element = {
  readonly oid: number;
  readonly parse: (text: string) => unknown;
  readonly write?: (value: never) => string;
};

/** These type ids never change in Postgres (pg_type.dat). */
const ELEMENTS: Readonly<Record<string, Element>> = {
  bool: { oid: 1000, parse: (text) => text === 't' },
  int2: { oid: 1005, parse: Number },
  int4: { oid: 1007, parse: Number },
  int8: { oid: 1016, parse: Number },
  float8: { oid: 1022, parse: Number },
  text: { oid: 1009, parse: String },
  timestamptz: { oid: 1185, parse: readInstant, write: writeInstant },
  tstzrange: { oid: 3911, parse: parseRange, write: (span: Span) => toRange(span) },
};

export const arrayTypes: Readonly<Record<string, ArrayType>> = Object.fromEntries(
  Object.entries(ELEMENTS).map(([name, { oid, parse, write }]) => {
    const element = write === undefined ? undefined : unlessText(write);
    return [
      `${name}Array`,
      {
        to: oid,
        from: [oid],
        serialize: (value: unknown) => writeArray(value, element),
        parse: (text: string) => readArray<unknown>(text, parse),
      },
    ];
  }),
);

/** Passes text on unchanged: the server parses it. */
export function unlessText(write: (value: never) => string): (value: unknown) => string {
  return (value) => (typeof value === 'string' ? value : write(value as never));
}

/** Writes an array literal. Text is taken for a literal and stays unchanged. */
export function writeArray(value: unknown, write?: (element: unknown) => string): string {
  if (!Array.isArray(value)) return String(value);
  return `{${value.map((element) => writeElement(element, write)).join(',')}}`;
}

function writeElement(value: unknown, write?: (element: unknown) => string): string {
  if (value === null || value === undefined) return 'NULL';
  if (write !== undefined) return quoted(write(value));
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return quoted(String(value));
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** Reads a one-dimensional array as the server prints it. */
function readArray<T>(text: string, parse: (element: string) => T): (T | null)[] {
  const elements = text.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,]+/gs) ?? [];
  return elements.map((element) => {
    if (element === 'NULL') return null;
    return parse(element.startsWith('"') ? element.slice(1, -1).replace(/\\(.)/gs, '$1') : element);
  });
}

/**
 * Writes the shortest round-trip text of each double, which Postgres reads back to the same bits. NaN becomes JSON's `null`, which
 * Postgres reads too. `JSON.stringify` writes numbers twice as fast as string concatenation does.
 */
export function writeNumbers(values: readonly (number | null)[]): string {
  return `{${JSON.stringify(values).slice(1, -1)}}`;
}

/** Writes seconds for `to_timestamp`, for thousands of instants at once: a quarter of the work of writing texts. Null and NaN become null. */
export function writeInstants(values: readonly (number | null)[]): string {
  return writeNumbers(values.map((at) => (at === null ? Number.NaN : at / 1000)));
}
