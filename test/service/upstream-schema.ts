/** Checks answers against the shapes of the vendor's OpenAPI document. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ANSWERS, SHAPES, type Shape } from './upstream-shapes.ts';

export type Tolerance = {
  /** For sources that lack much (a recorded market has no capitalisation): any value may be null. */
  readonly nulls: 'documented' | 'anywhere';
  /** Currencies without a rate in the source: their values are null, and no others (decision 64). */
  readonly unrated?: readonly string[];
  /** For coins that were never requested on their own: any field may be missing, as the document requires none. */
  readonly absent?: 'some' | 'any';
};

/** Fields that are null in recorded answers or in notes of the document, though its shapes do not allow it (upstream-api.md, 1.4 to 1.20). */
const NULL_ALL_THE_SAME = new Set([
  // "Missing values" of tickers, which are documented for all of them, and null in practice.
  ...Object.keys(SHAPES.quote)
    .filter((field) => field !== 'price')
    .map((field) => `quote.${field}`),
  'exchange.message',
  'exchange.adjusted_rank',
  'exchange.reported_rank',
  'coin_market.market_url',
  'market.market_url',
  'whitepaper.thumbnail',
  'info.portal_url',
  'simple_quote.price',
]);

/** Fields that answers may leave out: nothing to tell, not in the plan, or not requested (1.4, 1.9, 1.18, 1.22). */
const MAY_BE_ABSENT = new Set([
  'tick.circulating_supply',
  ...['parent', 'contract', 'platform', 'contracts', 'whitepaper', 'logo'].map((field) => `coin_extended.${field}`),
  ...Object.keys(SHAPES.coin_links).map((kind) => `coin_links.${kind}`),
  'link_extended.stats',
  'exchange_links.website',
  'exchange_links.twitter',
  'tag.coins',
  'tag.icos',
  ...Object.keys(SHAPES.search_results).map((kind) => `search_results.${kind}`),
]);

export type AnswerPath = keyof typeof ANSWERS;

/** Throws for the first field that disagrees with the document. */
export function createAnswerCheck({
  nulls,
  unrated = [],
  absent = 'some',
}: Tolerance): (path: AnswerPath, body: unknown) => void {
  const ajv = new Ajv2020({ allErrors: false, strict: false });
  for (const [name, shape] of Object.entries(SHAPES)) ajv.addSchema(schemaOf(shape, name), `#${name}`.slice(1));
  const checks = new Map<string, ValidateFunction>();
  return (path, body) => {
    const shape: Shape | null = ANSWERS[path];
    if (shape === null) throw new Error(`${path} has no body to check`);
    const check = checks.get(path) ?? ajv.compile(schemaOf(shape, path));
    checks.set(path, check);
    if (!check(body)) {
      const [problem] = check.errors!;
      throw new Error(`${path}: ${problem!.instancePath || 'body'} ${problem!.message}`);
    }
  };

  function schemaOf(shape: Shape, where: string): object {
    if (typeof shape === 'string') return orNull(simple(shape.replace(/\?$/, '')), shape.endsWith('?'), where);
    if (Array.isArray(shape)) {
      return orNull({ type: 'array', items: schemaOf(shape[0], `${where}[]`) }, shape.length === 2, where);
    }
    const fields = Object.entries(shape as Record<string, Shape>);
    const [first] = fields;
    if (first?.[0] === '*') {
      const unknown = where.endsWith('quotes') ? unrated.map((symbol) => [symbol, nullIn(first[1])]) : [];
      return {
        type: 'object',
        properties: Object.fromEntries(unknown),
        additionalProperties: schemaOf(first[1], `${where}.*`),
      };
    }
    return {
      type: 'object',
      required: fields
        .map(([name]) => name)
        .filter((name) => absent === 'some' && !MAY_BE_ABSENT.has(`${where}.${name}`)),
      properties: Object.fromEntries(fields.map(([name, field]) => [name, schemaOf(field, `${where}.${name}`)])),
    };
  }

  /** The record of that name, with null for every value. */
  function nullIn(shape: Shape): object {
    const values = Object.entries(SHAPES[(shape as string).slice(1) as keyof typeof SHAPES]);
    return {
      type: 'object',
      required: values.map(([name]) => name),
      properties: Object.fromEntries(values.map(([name]) => [name, { type: 'null' }])),
    };
  }

  function simple(name: string): object {
    return name.startsWith('#') ? { $ref: name.slice(1) } : { type: name };
  }

  function orNull(schema: object, isNullable: boolean, where: string): object {
    const may = isNullable || NULL_ALL_THE_SAME.has(where) || (nulls === 'anywhere' && /[.*]/.test(where));
    return may ? { anyOf: [schema, { type: 'null' }] } : schema;
  }
}
