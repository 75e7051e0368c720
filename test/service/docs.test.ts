import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, ENDPOINTS } from '../../src/contract/interface/endpoints.ts';
import { EXAMPLES } from '../../src/contract/interface/examples.ts';
import type { OpenApiDocument } from '../../src/contract/interface/openapi.ts';
import type { WarehouseTools } from '../../src/contract/interface/warehouse-tools.ts';
import { PLANS } from '../../src/contract/plan/plans.ts';
import { VERSION } from '../../src/core/version.ts';
import { createService } from '../../src/service/service.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { frozenClock, openAccess } from './conformance.ts';
import { copied, send } from './copied.ts';

const clock = frozenClock(Date.UTC(2024, 5, 1, 12, 3, 20));
const hour = { from: '2024-05-01T00:00:00Z', to: '2024-06-01T00:00:00Z' };
const series = { coin_id: 'btc-bitcoin', symbol: 'BTC', quote: 'usd', interval: '24h' };
/** A warehouse with one series, in which one day has no candle. */
const warehouse: WarehouseTools = {
  coverage: async () => [
    {
      ...series,
      wanted_from: hour.from,
      wanted_to: null,
      slots_wanted: 31,
      slots_covered: 30,
      slots_missing: 1,
      slots_unsettled: 0,
      percent_complete: 96.77,
      covered: [{ from: hour.from, to: '2024-05-31T00:00:00Z' }],
    },
  ],
  gaps: async () => [
    {
      ...series,
      gap_from: '2024-05-31T00:00:00Z',
      gap_to: hour.to,
      slots: 1,
      reason: 'failed',
      detail: 'HTTP 503',
      next_ask_at: '2024-06-01T12:13:20Z',
    },
  ],
  explain: async () => ({
    coin_id: series.coin_id,
    quote: series.quote,
    interval: series.interval,
    time_open: hour.from,
    time_close: '2024-05-01T23:59:59Z',
    events: [{ at: '2024-05-03T00:10:00Z', event: 'final', detail: 'Upstream told this candle.' }],
  }),
  runSql: async () => ({ columns: ['coin_id', 'close'], rows: [['btc-bitcoin', 67491.41]], truncated: false }),
};
const parts = {
  data: {
    ...createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock }),
    idChanges: async () => [
      { currency_id: 'coin', old_id: 'old-coin', new_id: 'new-coin', changed_at: '2024-05-02T10:00:00Z' },
    ],
  },
  access: {
    ...openAccess,
    account: () => ({
      plan: 'free',
      plan_started_at: null,
      plan_status: 'active',
      portal_url: null,
      usage: { message: null, current_month: { requests_made: 1_200, requests_left: 18_800 } },
    }),
  },
  clock,
  warehouse,
  onError: (error: unknown): void => {
    throw error;
  },
};
const service = createService(parts);
const ask = (address: string, init?: RequestInit) => service(new Request(address, init));
const document = async () => (await (await ask('http://service/openapi.json')).json()) as OpenApiDocument;
const pageAt = async (origin: string, headers: Record<string, string> = {}) =>
  (await ask(`${origin}/docs`, { headers })).text();
/** Tools that reply that this server does not offer them. */
const NOT_ANSWERED = ['submitFeedback'];

let page = '';
beforeAll(async () => {
  page = await pageAt('http://service');
});

/** Cuts lists to their first row, and lists of names to three. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, typeof value[0] === 'object' ? 1 : 3).map(shortened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortened(one)]));
}

describe('the page /docs', () => {
  it('shows every endpoint with its parameters and every tool with its arguments, and loads and runs nothing', async () => {
    const answer = await ask('http://service/docs');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8']);
    for (const [path, { get: operation }] of Object.entries((await document()).paths)) {
      expect(page).toContain(`<code>GET /v1${path}</code>`);
      for (const { name } of operation.parameters) expect(page).toContain(`<code>${name}</code>`);
    }
    const listed = await ask('http://service/rpc', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
    const { result } = (await listed.json()) as {
      result: { tools: { name: string; inputSchema: { properties: object } }[] };
    };
    expect(result.tools.length).toBeGreaterThan(30);
    for (const { name, inputSchema } of result.tools) {
      expect(page).toContain(`<h3><code>${name}</code></h3>`);
      for (const argument of Object.keys(inputSchema.properties)) expect(page).toContain(`<code>${argument}</code>`);
    }
    const policy = answer.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)![1]!;
    expect(policy).toContain(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
    expect(page).not.toMatch(/<script|<link|<img| src=| style=| on\w+=/);
  });

  it('explains the headers of answers as the OpenAPI document does', async () => {
    const { paths } = await document();
    const responses = Object.values(paths)
      .filter(({ get: operation }) => operation.tags[0] !== 'Account')
      .flatMap(({ get: operation }) => Object.entries(operation.responses));
    const told = new Map(responses.flatMap(([, { headers = {} }]) => Object.entries(headers)));
    const names = [
      'X-Chandler-Coverage',
      'X-Chandler-As-Of',
      'RateLimit-Limit',
      'RateLimit-Remaining',
      'RateLimit-Reset',
    ];
    expect([...told.keys()]).toEqual(expect.arrayContaining([...names, 'Retry-After', 'ETag', 'Location']));
    for (const [name, { description }] of told) {
      const written = description.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
      expect([name, page.includes(`<code>${name}</code>`), page.includes(written)]).toEqual([name, true, true]);
    }
    for (const [status, { headers = {} }] of responses) {
      expect([status, 'Retry-After' in headers]).toEqual([status, ['402', '429', '503'].includes(status)]);
      expect([status, 'RateLimit-Limit' in headers]).toEqual([status, status !== '403']);
    }
  });

  it('has no broken links, and one heading for each record', async () => {
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]!);
    expect(new Set(ids).size).toBe(ids.length);
    const targets = [...page.matchAll(/ href="#([^"]+)"/g)].map((match) => match[1]!);
    expect(ids).toEqual(expect.arrayContaining(targets));
    expect(page).toMatch(/^<!doctype html><html lang="en">/);
    expect(page).not.toContain('undefined');
    expect(page).not.toContain('[object');
  });

  it('writes addresses with the host that the reader used; from a proxy it accepts the scheme, and no other host', async () => {
    expect(copied(await pageAt('https://data.example.com'))[0]!.address).toBe('https://data.example.com/v1/global');
    expect(copied(await pageAt('http://[::1]:8080'))[0]!.address).toBe('http://[::1]:8080/v1/global');
    const forwarded = await pageAt('http://data.example.com', {
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'evil.example',
    });
    expect(copied(forwarded)[0]!.address).toBe('https://data.example.com/v1/global');
    expect(forwarded).not.toContain('evil');
    expect(await pageAt("http://a'b;c")).not.toContain("a'b");
  });

  it('has examples that work as copied, on the free plan where the plan includes them', async () => {
    const examples = copied(page);
    expect(examples.length).toBe(ENDPOINT_NAMES.length + Object.keys(EXAMPLES.tools).length);
    const tooOld = (start: number, depth: number | null) =>
      depth !== null && start < clock.now() - depth ? 'too old' : null;
    const onFree = createService({
      ...parts,
      access: {
        ...parts.access,
        admit: ({ key }) => ({ kind: 'admitted', plan: key === null ? 'free' : 'enterprise' }),
        refuseHistory: (plan, interval, start) =>
          PLANS[plan].intervals.includes(interval) ? tooOld(start, PLANS[plan].historyDepthMs) : interval,
        refuseTickerHistory: (plan, resolution, start) => tooOld(start, PLANS[plan].tickerHistoryDepthMs[resolution]),
        refuseIdChanges: (plan) => (PLANS[plan].idChanges ? null : 'not in the plan'),
        refuseMappings: (plan) => (PLANS[plan].mappings ? null : 'not in the plan'),
      },
    });
    for (const example of examples) {
      const answer = await send(example, onFree);
      const body = await answer.text();
      expect([example.address, example.body, body.slice(0, 200), answer.status < 400]).toEqual([
        example.address,
        example.body,
        body.slice(0, 200),
        true,
      ]);
      if (NOT_ANSWERED.some((name) => example.body?.includes(name))) continue;
      expect([example.body, body]).toEqual([example.body, expect.not.stringMatching(/"error"|"isError":true/)]);
    }
  });

  it('has an example answer for every endpoint and tool', async () => {
    const requests = copied(page);
    const endpoints: Record<string, unknown> = {};
    for (const name of ENDPOINT_NAMES) {
      const [request] = copied(page.slice(page.indexOf(`<section id="${name}">`)));
      const answer = await send(request!, service);
      endpoints[name] =
        ENDPOINTS[name].answer === null ? answer.headers.get('location') : shortened(await answer.json());
    }
    const tools: Record<string, unknown> = {};
    for (const request of requests.filter(({ body }) => body !== undefined)) {
      const { params } = JSON.parse(request.body!) as { params: { name: string } };
      const { result, error } = (await (await send(request, service)).json()) as {
        result?: { content: { text: string }[] };
        error?: object;
      };
      tools[params.name] = error ? { error } : shortened(JSON.parse(result!.content[0]!.text));
    }
    const lines = (answers: Record<string, unknown>) =>
      Object.entries(answers)
        .map(([name, answer]) => `    ${JSON.stringify(name)}: ${JSON.stringify(answer)}`)
        .join(',\n');
    const release = `"version":"${VERSION}"`;
    const text = `{\n  "endpoints": {\n${lines(endpoints)}\n  },\n  "tools": {\n${lines(tools)}\n  }\n}\n`.replaceAll(
      release,
      '"version":"1.0.0"',
    );
    await expect(text).toMatchFileSnapshot('../../src/contract/interface/example-answers.json');
  });
});
