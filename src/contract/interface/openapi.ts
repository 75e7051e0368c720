/**
 * The OpenAPI document of the REST interface, generated from `ENDPOINTS` and the schemas of the records, so that it always agrees with
 * them.
 */
import { z } from 'zod';
import { UNKNOWN_ID, UNKNOWN_ROUTE } from '../answer/errors.ts';
import { AS_OF_DESCRIPTION, AS_OF_HEADER, COVERAGE_DESCRIPTION, COVERAGE_HEADER } from '../answer/provenance.ts';
import * as catalogue from '../record/catalogue.ts';
import { legacyTickerSchema, simpleTickerSchema } from '../record/older-records.ts';
import * as records from '../record/records.ts';
import { ENDPOINT_NAMES, ENDPOINTS, type Endpoint } from './endpoints.ts';
import { EXAMPLES } from './examples.ts';
import type { Parameter } from './parameters.ts';
import { BASE_PATH } from './paths.ts';

/** JSON Schema, limited to the keywords that our schemas use. */
export type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly anyOf?: readonly Schema[];
};

type OpenApiResponse = {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
};
export type OpenApiOperation = {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly deprecated?: true;
  readonly parameters: readonly Parameter[];
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
};
export type OpenApiDocument = ReturnType<typeof openApiDocument>;

/** The records that are named schemas in the document. */
const NAMED = {
  Global: records.globalSchema,
  Ticker: records.tickerSchema,
  SimpleTicker: simpleTickerSchema,
  LegacyTicker: legacyTickerSchema,
  HistoricalTick: catalogue.historicalTickSchema,
  Coin: records.coinSummarySchema,
  CoinDetails: catalogue.coinDetailsSchema,
  CoinEvent: catalogue.coinEventSchema,
  CoinExchange: catalogue.coinExchangeSchema,
  CoinMarket: catalogue.coinMarketSchema,
  Exchange: records.exchangeSchema,
  ExchangeMarket: catalogue.exchangeMarketSchema,
  Person: catalogue.personSchema,
  Tag: catalogue.tagSchema,
  Contract: catalogue.contractSchema,
  IdChange: catalogue.idChangeSchema,
  SearchResult: catalogue.searchResultSchema,
  PriceConversion: catalogue.priceConversionSchema,
  Account: records.accountInfoSchema,
} as const;

const refTo = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const ERROR: Schema = { type: 'object', properties: { error: { type: 'string' } }, required: ['error'] };

export function openApiDocument({ version }: { readonly version: string }) {
  const { components, answers } = schemas();
  const paths = ENDPOINT_NAMES.map((name) => {
    const endpoint: Endpoint = ENDPOINTS[name];
    const { path, group, summary, parameters, deprecated } = endpoint;
    const operation: OpenApiOperation = {
      operationId: name,
      summary,
      tags: [group],
      ...(deprecated && { deprecated }),
      parameters,
      responses: responsesOf(endpoint, answers.get(name), EXAMPLES.endpoints[name]),
    };
    return [path, { get: operation }] as const;
  });
  return {
    openapi: '3.1.0' as const,
    info: {
      title: 'Chandler: market data',
      version,
      description:
        'Crypto market data out of one warehouse. Every path also answers HEAD, and POST as GET. A missing value is null, or its field is left out. ' +
        'The same data are at /rpc for JSON-RPC 2.0 and MCP clients.',
    },
    servers: [{ url: BASE_PATH }],
    security: [{}, { bearer: [] }, { bareKey: [] }],
    tags: [...new Set(ENDPOINT_NAMES.map((name) => ENDPOINTS[name].group))].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: { ...components, Error: ERROR },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        bareKey: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The key alone, without a scheme.',
        },
      },
    },
  };
}

const REFUSALS = {
  400: 'A parameter is invalid; the text names it and the rule.',
  402: 'The plan does not include this, or its quota is exhausted.',
  403: 'The key is unknown, or a key is required.',
  404: `Not found: "${UNKNOWN_ID}".`,
  429: 'Too many requests in a second, or today.',
  500: 'An unexpected error; the operator finds it in the log.',
  503: 'The data are unavailable for the moment.',
} as const;

function responsesOf(
  { answer, refusals, group }: Endpoint,
  schema: Schema | undefined,
  example: unknown,
): OpenApiOperation['responses'] {
  const good: OpenApiResponse = {
    description: 'The answer.',
    headers: group === 'Account' ? {} : { ...ETAG, ...PROVENANCE, ...ALLOWANCE },
    ...(schema && { content: { 'application/json': { schema, example } } }),
  };
  const moved: OpenApiResponse = {
    description: 'The ticker is at another path.',
    headers: {
      ...PROVENANCE,
      ...ALLOWANCE,
      Location: { description: 'Relative, with the same query.', schema: { type: 'string' } },
    },
  };
  const bad = [...refusals.filter((status) => status !== 'no route'), 402, 403, 429, 500, 503] as const;
  const refused = bad.map((status): [string, OpenApiResponse] => [
    String(status),
    {
      description: REFUSALS[status],
      headers: {
        ...(MAY_RETRY.has(status) && RETRY),
        ...(status === 404 && PROVENANCE),
        ...(status !== 403 && ALLOWANCE),
      },
      content: { 'application/json': { schema: refTo('Error') } },
    },
  ]);
  const same: OpenApiResponse = {
    description: 'The answer that If-None-Match names is still current.',
    headers: { ...ETAG, ...PROVENANCE, ...ALLOWANCE },
  };
  const noRoute: OpenApiResponse = {
    description: `Not on the free plan: "${UNKNOWN_ROUTE}".`,
    headers: ALLOWANCE,
    content: { 'text/plain': { schema: { type: 'string' } } },
  };
  return {
    ...(answer === null ? { '301': moved } : { '200': good }),
    ...(answer !== null && group !== 'Account' && { '304': same }),
    ...(refusals.includes('no route') && { '404': noRoute }),
    ...Object.fromEntries(refused),
  };
}

const MAY_RETRY: ReadonlySet<number> = new Set([402, 429, 503]);
const RETRY = {
  'Retry-After': { description: 'Seconds after which a retry can succeed.', schema: { type: 'integer' } },
};
/** The headers for callers with a limit. */
const ALLOWANCE = {
  'RateLimit-Limit': {
    description:
      'Where the caller has a limit: the size of the window with the fewest requests left, the day or the month; of a second when ' +
      'a request came too fast.',
    schema: { type: 'integer' },
  },
  'RateLimit-Remaining': { description: 'Requests left in that window.', schema: { type: 'integer' } },
  'RateLimit-Reset': { description: 'Seconds until that window ends.', schema: { type: 'integer' } },
};
const ETAG = { ETag: { description: 'For If-None-Match.', schema: { type: 'string' } } };
const PROVENANCE = {
  [COVERAGE_HEADER]: { description: COVERAGE_DESCRIPTION, schema: { type: 'string' } },
  [AS_OF_HEADER]: { description: AS_OF_DESCRIPTION, schema: { type: 'string' } },
};

/** The named schemas, and the schema of each endpoint's answer, which refers to them. */
function schemas(): { components: Record<string, Schema>; answers: Map<string, Schema> } {
  const registry = z.registry<{ id: string }>();
  const names = new Map<z.ZodType, string>(Object.entries(NAMED).map(([name, schema]) => [schema, name]));
  for (const [schema, id] of names) registry.add(schema, { id });
  for (const name of ENDPOINT_NAMES) {
    const { answer } = ENDPOINTS[name];
    if (answer !== null && !names.has(answer)) {
      names.set(answer, `answer ${name}`);
      registry.add(answer, { id: `answer ${name}` });
    }
  }
  const written = z.toJSONSchema(registry, { io: 'input', unrepresentable: 'any', uri: (id) => refTo(id).$ref! });
  const plain = new Map(Object.entries(written.schemas).map(([id, schema]) => [id, simplified(schema as RawSchema)]));
  const answers = new Map<string, Schema>();
  for (const name of ENDPOINT_NAMES) {
    const { answer } = ENDPOINTS[name];
    const id = answer === null ? undefined : names.get(answer)!;
    if (id !== undefined) answers.set(name, id in NAMED ? refTo(id) : plain.get(id)!);
  }
  return { components: Object.fromEntries([...plain].filter(([id]) => id in NAMED)), answers };
}

type RawSchema = Omit<Schema, 'anyOf'> & { readonly const?: unknown; readonly anyOf?: readonly RawSchema[] };

/**
 * Keeps only the keywords of `Schema`. It also removes the empty text in place of a missing number: the upstream's documents allow it, so our
 * schemas accept it, but the service never writes it.
 */
function simplified(schema: RawSchema): Schema {
  const { $ref, type, properties, required, items, additionalProperties, anyOf } = schema;
  if (anyOf) {
    const choices = anyOf.filter((choice) => choice.const !== '').map(simplified);
    if (choices.length === 1) return choices[0]!;
    const types = choices.map((choice) => (Object.keys(choice).join() === 'type' ? choice.type : undefined));
    return types.every((one) => typeof one === 'string') ? { type: types as string[] } : { anyOf: choices };
  }
  return {
    ...($ref && { $ref }),
    ...(type && { type }),
    ...(properties && { properties: mapValues(properties, simplified) }),
    ...(required?.length && { required }),
    ...(items && { items: simplified(items) }),
    ...(additionalProperties &&
      Object.keys(additionalProperties).length > 0 && { additionalProperties: simplified(additionalProperties) }),
  };
}

function mapValues(fields: Readonly<Record<string, Schema>>, map: (schema: Schema) => Schema): Record<string, Schema> {
  return Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, map(schema)]));
}
