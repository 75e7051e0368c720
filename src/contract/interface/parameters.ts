/** Parameters of queries: each has a description for the OpenAPI document, and a parser for its text. */
import type { Instant } from '../../clock.ts';
import { parseDate, parseTime } from '../time.ts';

export type Parsed<T> = { readonly ok: true; readonly value: T } | Invalid;

export type Invalid = {
  readonly ok: false;
  /** Names the parameter, the rule and the given value. */
  readonly message: string;
  /** The name of the invalid parameter. */
  readonly parameter: string;
};

/** A parameter in the form of the OpenAPI document. */
export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description: string;
  /** JSON Schema. */
  readonly schema: {
    readonly type: 'string' | 'integer' | 'number';
    readonly enum?: readonly string[];
    readonly default?: string | number;
    readonly minimum?: number;
    readonly maximum?: number;
    readonly example?: string | number;
  };
};

export type QueryParameter<T> = {
  readonly documented: Parameter;
  /** Null and an empty text mean that the parameter is not given. */
  readonly parse: (text: string | null) => Parsed<T>;
};

/** The values of the parameters, or the problem of the first invalid one. */
export function parseQuery<P extends Readonly<Record<string, QueryParameter<unknown>>>>(
  query: URLSearchParams,
  parameters: P,
): Parsed<{ readonly [K in keyof P]: P[K] extends QueryParameter<infer T> ? T : never }> {
  const values: Record<string, unknown> = {};
  for (const [key, { documented, parse }] of Object.entries(parameters)) {
    const parsed = parse(query.get(documented.name));
    if (!parsed.ok) return parsed;
    values[key] = parsed.value;
  }
  return ok(values as never);
}

/** Parses the text of a parameter. `name` is for its messages. */
type Parse<T> = (text: string, name: string) => Parsed<T>;

export function optional<T, D>(
  name: string,
  description: string,
  schema: Parameter['schema'],
  byDefault: D,
  parse: Parse<T>,
): QueryParameter<T | D> {
  return {
    documented: { name, in: 'query', required: false, description, schema },
    parse: (text) => (text ? parse(text, name) : ok(byDefault)),
  };
}

/** A required parameter. The example is for the OpenAPI document. */
export function required<T>(name: string, description: string, example: string, parse: Parse<T>): QueryParameter<T> {
  return {
    documented: { name, in: 'query', required: true, description, schema: { type: 'string', example } },
    parse: (text) => (text ? parse(text, name) : invalid(name, 'is required', null)),
  };
}

/** An optional parameter with one of these values. */
export function oneOf<T extends string>(
  name: string,
  description: string,
  values: readonly T[],
  byDefault: T,
): QueryParameter<T> {
  return optional(name, description, { type: 'string', enum: values, default: byDefault }, byDefault, (text) => {
    const value = values.find((one) => one === text);
    return value === undefined ? invalid(name, `must be one of ${values.join(' ')}`, text) : ok(value);
  });
}

/** Some of the values in `known`, separated by commas, each once. */
export function listOf<T extends string>(known: readonly T[]): Parse<readonly T[]> {
  return (text, name) => {
    const items = [...new Set(text.split(',').map((item) => item.trim()))].filter((item) => item !== '');
    const unknown = items.find((item) => !(known as readonly string[]).includes(item));
    return unknown === undefined
      ? ok(items as T[])
      : invalid(name, `must be one or more of ${known.join(' ')}`, unknown);
  };
}

/** A whole number from 1 to `most`. */
export function countTo(most: number): Parse<number> {
  return (text, name) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    return value >= 1 && value <= most ? ok(value) : invalid(name, `must be a whole number from 1 to ${most}`, text);
  };
}

const TIME_FORMATS =
  'must be a date (2018-02-15), an RFC 3339 time (2018-02-15T05:15:00Z) or unix seconds (1518671700)';

/** Parses any of the three formats that the upstream accepts. A date is midnight UTC. */
export function parseInstant(text: string, name: string): Parsed<Instant> {
  if (/^\d{1,11}$/.test(text)) return ok(Number(text) * 1_000);
  const at = text.length === 10 ? parseDate(text) : parseTime(text);
  return Number.isNaN(at) ? invalid(name, TIME_FORMATS, text) : ok(at);
}

export function ok<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

/** A message that begins like the upstream's texts, and then adds the rule and the given value (decision 6). */
export function invalid(name: string, rule: string, given: string | null): Invalid {
  const got = given === null ? '' : `, got "${given.length > 40 ? `${given.slice(0, 39)}…` : given}"`;
  return { ok: false, message: `invalid parameters: ${name} ${rule}${got}`, parameter: name };
}
