/**
 * The array types our statements use, known in advance. Left to itself postgres.js asks each new connection for all of them, and a
 * connection lost during that question rejects where nobody can catch it.
 */

type ArrayType = {
  readonly to: number;
  readonly from: number[];
  readonly serialize: (value: unknown) => string;
  readonly parse: (text: string) => unknown[];
};

/** Fixed for ever in Postgres (pg_type.dat). */
const OIDS = {
  bool: [1000, (text: string) => text === 't'],
  int2: [1005, Number],
  int4: [1007, Number],
  int8: [1016, Number],
  float8: [1022, Number],
  text: [1009, String],
  timestamptz: [1185, String],
  tstzrange: [3911, String],
} as const satisfies Record<string, readonly [number, (text: string) => unknown]>;

export const arrayTypes: Readonly<Record<string, ArrayType>> = Object.fromEntries(
  Object.entries(OIDS).map(([name, [oid, parse]]) => [
    `${name}Array`,
    { to: oid, from: [oid], serialize: writeArray, parse: (text: string) => readArray<unknown>(text, parse) },
  ]),
);

/** An array literal; text that is one already stays as it is. */
export function writeArray(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  return `{${value.map(writeElement).join(',')}}`;
}

function writeElement(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return `"${String(value).replace(/[\\"]/g, '\\$&')}"`;
}

/** One-dimensional arrays, as a server prints them. */
export function readArray<T>(text: string, parse: (element: string) => T): (T | null)[] {
  const elements = text.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,]+/gs) ?? [];
  return elements.map((element) => {
    if (element === 'NULL') return null;
    return parse(element.startsWith('"') ? element.slice(1, -1).replace(/\\(.)/gs, '$1') : element);
  });
}

/**
 * Shortest round-trip text of each double, which Postgres reads back to the same bits; it reads JSON's `null` too, which is
 * what becomes of NaN. `JSON.stringify` writes numbers twice as fast as string concatenation does.
 */
export function writeNumbers(values: readonly (number | null)[]): string {
  return `{${JSON.stringify(values).slice(1, -1)}}`;
}

/** Instants as seconds; null and NaN are null. */
export function writeInstants(values: readonly (number | null)[]): string {
  return writeNumbers(values.map((at) => (at === null ? Number.NaN : at / 1000)));
}
