import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { createScaledClock } from '../../src/clock.ts';
import { completeAsOf, withProvenance } from '../../src/contract/answer/provenance.ts';
import { UNANSWERED } from '../../src/contract/interface/endpoints.ts';
import { type OpenApiDocument, openApiDocument } from '../../src/contract/interface/openapi.ts';
import { createService, restRoutes } from '../../src/service/service.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { openAccess } from './conformance.ts';
import { ANSWERS } from './upstream-shapes.ts';

const clock = createScaledClock({ speed: 0, startAt: Date.UTC(2024, 5, 1, 12, 3, 20) });
const parts = {
  data: createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock }),
  access: openAccess,
  clock,
  onError: (error: unknown): void => {
    throw error;
  },
};
const service = createService(parts);
const get = (path: string) => service(new Request(`http://service${path}`));
const document = async () => (await (await get('/openapi.json')).json()) as OpenApiDocument;

describe('the OpenAPI document', () => {
  it('has every route, and no other', async () => {
    const routes = new Set(
      restRoutes(parts)
        .routes.filter(({ method }) => method === 'GET')
        .map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}')),
    );
    expect(Object.keys((await document()).paths).sort()).toEqual([...routes].sort());
  });

  it('has everything of the vendor’s document, except what we cannot answer', async () => {
    const { paths } = await document();
    expect(Object.keys(paths).sort()).toEqual(Object.keys(ANSWERS).sort());
    for (const path of UNANSWERED) expect(paths).not.toHaveProperty([path]);
  });

  it('is consistent: its references resolve, its names are unique, and each path has the parameters in its braces', async () => {
    const { paths, components, tags } = await document();
    const operations = Object.entries(paths).map(([path, { get }]) => ({ path, ...get }));
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { path, parameters, tags: own } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      expect(parameters.filter((one) => one.in === 'path').map(({ name }) => name)).toEqual(named);
      expect(new Set(parameters.map(({ name }) => name)).size).toBe(parameters.length);
      expect(tags.map(({ name }) => name)).toContain(own[0]);
    }
    const refs = [...JSON.stringify(paths).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map((m) => m[1]!);
    expect(refs.length).toBeGreaterThan(50);
    expect(Object.keys(components.schemas)).toEqual(expect.arrayContaining(refs));
    const unused = Object.keys(components.schemas).filter(
      (name) => !JSON.stringify({ paths, components }).includes(`/${name}"`),
    );
    expect(unused).toEqual([]);
  });

  it('describes the answers that the service gives', async () => {
    const { paths, components } = await document();
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: 'doc', components });
    let answered = 0;
    for (const [path, { get: operation }] of Object.entries(paths)) {
      const schema = operation.responses['200']?.content?.['application/json']?.schema;
      if (!schema || operation.tags[0] === 'Account') continue;
      const query = operation.parameters
        .filter((one) => one.in === 'query' && (one.required || one.schema.example !== undefined))
        .map(({ name, schema: { example } }) => `${name}=${example}`);
      const filled = operation.parameters
        .filter((one) => one.in === 'path')
        .reduce((text, { name, schema: { example } }) => text.replace(`{${name}}`, String(example)), path);
      const answer = await get(`/v1${filled}?${query.join('&')}`);
      expect([path, answer.status]).toEqual([path, 200]);
      const check = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"doc#/')));
      expect([path, check(await answer.json()), check.errors]).toEqual([path, true, null]);
      const { example } = operation.responses['200']!.content!['application/json']!;
      expect([path, check(example), check.errors]).toEqual([path, true, null]);
      answered++;
    }
    expect(answered).toBe(Object.keys(paths).length - 4);
  });

  it('describes the other answers: not modified, unexpected error, unknown route', async () => {
    const { paths, components } = await document();
    const coins = withProvenance([...(await parts.data.coins())], completeAsOf(clock.now()));
    const ask = async (path: string, over: Partial<typeof parts> = {}, headers: Record<string, string> = {}) => {
      const answer = await createService({ ...parts, ...over })(new Request(`http://service/v1${path}`, { headers }));
      const described = paths[path]!.get.responses[String(answer.status)];
      const types = Object.keys(described?.content ?? {});
      expect([path, answer.status, ...types]).toEqual([
        path,
        answer.status,
        ...[answer.headers.get('content-type')?.replace(/;.*/, '')].filter((type) => type !== undefined),
      ]);
      const own = [...answer.headers.keys()].filter((name) => /^(etag|x-chandler|retry|location)/.test(name));
      expect(Object.keys(described!.headers!).map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(own));
      return answer;
    };
    const data = { ...parts.data, coins: async () => coins };
    const etag = (await ask('/coins', { data })).headers.get('etag')!;
    expect((await ask('/coins', { data }, { 'If-None-Match': etag })).status).toBe(304);
    const broken = { ...parts.data, coins: () => Promise.reject(new Error('boom')) };
    const failed = await ask('/coins', { data: broken, onError: () => undefined });
    expect(failed.status).toBe(500);
    const isError = new Ajv2020({ strict: false }).compile(components.schemas.Error!);
    expect(isError(await failed.json())).toBe(true);
    const free = { ...openAccess, admit: () => ({ kind: 'admitted', plan: 'free' }) as const };
    expect((await ask('/tickers/simple', { access: free })).status).toBe(404);
    for (const { get: operation } of Object.values(paths)) expect(operation.responses).toHaveProperty('500');
  });

  it('does not promise what is only accepted from the upstream, such as an empty text for a number', () => {
    const text = JSON.stringify(openApiDocument({ version: '1.2.3' }));
    expect(text).toContain('"version":"1.2.3"');
    expect(text).not.toMatch(/"const"|"anyOf":\[\]/);
  });
});
