/** Converts the values of an SQL result to JSON, from the texts that Postgres sends. */

const TYPE = {
  bool: 16,
  int8: 20,
  int2: 21,
  int4: 23,
  oid: 26,
  json: 114,
  float4: 700,
  float8: 701,
  timestamptz: 1184,
  numeric: 1700,
  jsonb: 3802,
};

/** The type ids of numbers. */
export const NUMBER_TYPES: ReadonlySet<number> = new Set([
  TYPE.int8,
  TYPE.int2,
  TYPE.int4,
  TYPE.oid,
  TYPE.float4,
  TYPE.float8,
  TYPE.numeric,
]);

/**
 * `type` is the id of the type. A value that a JSON number cannot hold stays a text: NaN, infinities and whole numbers past 2^53; with `isExact`
 * also a numeric with more digits than a double has.
 */
export function toJsonValue(text: string | null, type: number, { isExact = false } = {}): unknown {
  if (text === null) return null;
  if (type === TYPE.bool) return text.startsWith('t');
  if (type === TYPE.json || type === TYPE.jsonb) return JSON.parse(text);
  if (type === TYPE.timestamptz) return text.replace(/^(\S+) (\S+)\+00$/, '$1T$2Z');
  if (!NUMBER_TYPES.has(type)) return text;
  const value = Number(text);
  if (!Number.isFinite(value)) return text;
  if (isExact && type === TYPE.numeric) return String(value) === text ? value : text;
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(text) ? value : text;
}
