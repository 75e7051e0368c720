import { describe, expect, it } from 'vitest';
import { completeAsOf, withProvenance } from '../../../src/contract/answer/provenance.ts';
import { HOSTED_TOOLS } from '../../../src/contract/interface/hosted-tools.ts';
import { toolFailureDataSchema, toolListSchema, toolResultSchema } from '../../../src/contract/interface/json-rpc.ts';
import { TOOL_NAMES, TOOLS, type ToolName } from '../../../src/contract/interface/tools.ts';
import { readRecord } from '../../../src/contract/record/records.ts';
import { MAX_BATCH } from '../../../src/service/rpc/rpc-messages.ts';
import { rpcResponseSchema } from '../../support/rpc-response.ts';
import { countingAccess, market, rpcService, sender } from '../../support/rpc-service.ts';
import { BTC } from '../../support/sample-records.ts';

const post = sender(rpcService());
const call = (name: string, given?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
});
const outputOf = async (name: string, given?: unknown, via = post) => {
  const { json } = await via(call(name, given));
  expect(json.error).toBeUndefined();
  return JSON.parse(toolResultSchema.parse(json.result).content[0]!.text!);
};
const ids = (rows: { id: string }[]) => rows.map((row) => row.id);

/** Arguments with which each tool succeeds. */
const ASKED: Record<ToolName, Record<string, unknown>> = {
  getGlobal: {},
  getCoins: { limit: 3 },
  getCoinById: { coinId: 'btc-bitcoin' },
  getCoinEvents: { coinId: 'btc-bitcoin', limit: 1 },
  getCoinExchanges: { coinId: 'btc-bitcoin' },
  getCoinMarkets: { coinId: 'btc-bitcoin', quotes: 'USD', limit: 2 },
  getTickers: { quotes: 'USD,BTC', limit: 4 },
  getTickersById: { coinId: 'btc-bitcoin' },
  getPeopleById: { personId: 'jo-bloggs' },
  getTags: { limit: 2 },
  getTagById: { tagId: 'currency', additionalFields: 'coins' },
  getExchanges: { limit: 5 },
  getExchangeByID: { exchangeId: 'binance' },
  getExchangeMarkets: { exchangeId: 'binance', limit: 1 },
  getPlatforms: { limit: 1 },
  getContracts: { platformId: 'eth-ethereum' },
  getTickerByContract: { platformId: 'eth-ethereum', contractAddress: '0xABC0' },
  priceConverter: { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'usd-us-dollars', amount: 2 },
  search: { q: 'bit', categories: 'currencies,people' },
};

describe('the tools over JSON-RPC', () => {
  it.each(TOOL_NAMES)('%s returns one text that contains JSON of its shape', async (name) => {
    const { status, headers, json } = await post(call(name, ASKED[name]));
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      200,
      'application/json',
      'no-store',
    ]);
    expect(Object.keys(json)).toEqual(['jsonrpc', 'id', 'result']);
    expect(json.result.content).toEqual([{ type: 'text', text: expect.any(String) }]);
    expect(readRecord(TOOLS[name].output, JSON.parse(json.result.content[0].text))).toMatchObject({ ok: true });
  });

  it('lists the tools with JSON Schema, any number of times', async () => {
    const { json } = await post({ jsonrpc: '2.0', id: 'x', method: 'tools/list', params: {} });
    const { tools } = toolListSchema.parse(json.result);
    expect(tools.map((tool) => tool.name)).toEqual([...TOOL_NAMES, ...Object.keys(HOSTED_TOOLS)]);
    expect(tools.find((tool) => tool.name === 'getCoinMarkets')).toMatchObject({
      inputSchema: {
        type: 'object',
        properties: { coinId: { type: 'string' }, quotes: { type: 'string' }, limit: { type: 'number', default: 50 } },
        required: ['coinId'],
      },
      outputSchema: { type: 'array' },
    });
    expect((await post({ jsonrpc: '2.0', id: 'x', method: 'tools/list' })).json).toEqual(json);
  });

  it('cuts lists to `limit`, by default to 50', async () => {
    expect(await outputOf('getCoins')).toHaveLength(50);
    expect(await outputOf('getCoins', { limit: 3.9 })).toHaveLength(3);
    const many = Array.from({ length: 300 }, (_, i) => ({ ...BTC, id: `c${i}-coin`, rank: i + 1 }));
    const of300 = sender(rpcService({ data: { coins: async () => many } }));
    expect(await outputOf('getCoins', { limit: 1e9 }, of300)).toHaveLength(250);
    expect(await outputOf('getCoinMarkets', { coinId: 'btc-bitcoin', limit: 2 })).toHaveLength(2);
    expect(await outputOf('getExchangeMarkets', { exchangeId: 'binance', limit: 1 })).toHaveLength(1);
  });

  it('returns tickers by rank in the requested quotes', async () => {
    const tickers = await outputOf('getTickers', { quotes: 'btc, usd', limit: 2 });
    expect(ids(tickers)).toEqual((await market.tickers({ quotes: ['USD'] })).slice(0, 2).map((t) => t.id));
    expect(Object.keys(tickers[0].quotes).sort()).toEqual(['BTC', 'USD']);
    expect((await outputOf('getTickersById', { coinId: 'btc-bitcoin' })).quotes).toHaveProperty('USD');
  });

  it('returns the lists of a tag only on request', async () => {
    const plain = await outputOf('getTagById', { tagId: 'currency' });
    expect(plain).not.toHaveProperty('coins');
    expect(plain).not.toHaveProperty('icos');
    const both = await outputOf('getTags', { additionalFields: 'coins,icos', limit: 1 });
    expect(both).toEqual([expect.objectContaining({ coins: ['btc-bitcoin', 'eth-ethereum'], icos: ['ico-first'] })]);
  });

  it('searches the requested categories, and by symbol alone on request', async () => {
    expect(Object.keys(await outputOf('search', { q: 'coin', categories: 'people' }))).toEqual(['people']);
    expect((await outputOf('search', { q: 'coin', modifier: 'symbol' })).currencies).toEqual([]);
    expect(ids((await outputOf('search', { q: 'btc', modifier: 'symbol' })).currencies)).toEqual(['btc-bitcoin']);
  });

  it('converts an amount, and by default none', async () => {
    const given = { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'usd-us-dollars' };
    expect(await outputOf('priceConverter', given)).toMatchObject({ amount: 0, price: 0 });
    expect(await outputOf('priceConverter', { ...given, amount: 0.5 })).toMatchObject({ price: 30_000.25 });
  });

  it('returns the provenance of an answer if the source has one', async () => {
    const asOf = Date.UTC(2024, 5, 1);
    const coins = withProvenance(await market.coins().then((all) => [...all]), completeAsOf(asOf));
    const { json } = await sender(rpcService({ data: { coins: async () => coins } }))(call('getCoins'));
    expect(json.result._meta).toEqual({ 'chandler/coverage': 'full', 'chandler/as-of': '2024-06-01T00:00:00Z' });
  });
});

describe('failures of tools', () => {
  it.each([
    ['getCoinById', { coinId: 'no-nowhere' }],
    ['getCoinEvents', { coinId: 'no-nowhere' }],
    ['getCoinExchanges', { coinId: 'no-nowhere' }],
    ['getCoinMarkets', { coinId: 'no-nowhere' }],
    ['getTickersById', { coinId: 'no-nowhere' }],
    ['getPeopleById', { personId: 'nobody' }],
    ['getTagById', { tagId: 'none' }],
    ['getExchangeByID', { exchangeId: 'none' }],
    ['getExchangeMarkets', { exchangeId: 'none' }],
    ['getContracts', { platformId: 'none' }],
    ['getTickerByContract', { platformId: 'eth-ethereum', contractAddress: '0x0' }],
    ['priceConverter', { baseCurrencyId: 'btc-bitcoin', quoteCurrencyId: 'no-nowhere' }],
  ])('%s of an unknown id is a 404 in the message', async (name, given) => {
    const { status, json } = await post(call(name, given));
    expect([status, json.error]).toEqual([200, { code: -32000, message: '404: id not found', data: { status: 404 } }]);
  });

  it('are 404 for an unknown id in every tool that takes one, however the id is spelt', async () => {
    const unknown = [
      'BTC',
      'bitcoin',
      'Btc-Bitcoin',
      'a b',
      '0',
      'a\0b',
      '\ud800',
      '../coins',
      'x'.repeat(5_000),
      '{"a":1}',
    ];
    const { json } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const { tools } = json.result as { tools: { name: string; inputSchema: { required: string[] } }[] };
    const known: Record<string, string> = {
      platformId: 'eth-ethereum',
      baseCurrencyId: 'btc-bitcoin',
      start: '2024-05-31',
    };
    let checked = 0;
    for (const { name, inputSchema } of tools) {
      const ids = inputSchema.required.filter((one) => /Id$|Address$/.test(one));
      if (ids.length === 0) continue;
      checked++;
      for (const given of unknown) {
        const filled = Object.fromEntries(inputSchema.required.map((one) => [one, known[one] ?? given]));
        const answer = await post(call(name, { ...filled, [ids.at(-1)!]: given }));
        const error = { code: -32000, message: '404: id not found', data: { status: 404 } };
        expect([name, given, answer.json.error]).toEqual([name, given, error]);
      }
      for (const wrong of [7, '', ' ', ['btc-bitcoin'], true]) {
        const filled = Object.fromEntries(inputSchema.required.map((one) => [one, known[one] ?? 'btc-bitcoin']));
        const answer = await post(call(name, { ...filled, [ids.at(-1)!]: wrong }));
        expect([name, answer.json.error]).toMatchObject([
          name,
          { code: -32602, message: expect.stringMatching(/^400: /), data: { status: 400, argument: ids.at(-1) } },
        ]);
      }
    }
    // Twelve of the 19 take an id, and five of the others.
    expect(checked).toBe(17);
  });

  it('name a wrong argument, as invalid params', async () => {
    const { json } = await post(call('getCoinMarkets', { coinId: 'btc-bitcoin', quotes: 'XAU' }));
    expect(json.error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^400: invalid parameters: quotes must be one or more of /),
      data: { status: 400, argument: 'quotes' },
    });
  });

  it('suggest the tool that was meant', async () => {
    const { json } = await post(call('getTicker'));
    expect(json.error).toMatchObject({ code: -32602, message: expect.stringMatching(/did you mean getTickers\?/) });
    for (const params of [undefined, {}, [], ['getGlobal'], { name: 7 }, { name: null }]) {
      const { json } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      expect(json.error).toMatchObject({ code: -32602, message: expect.stringMatching(/name must be one of/) });
    }
  });

  it.each([
    [402, undefined],
    [403, undefined],
    [429, 17],
  ] as const)('contain a refusal of status %d, and when to retry', async (status, retryAfterSeconds) => {
    const { access } = countingAccess({
      admit: () => ({ kind: 'rejected', status, message: 'no', ...(retryAfterSeconds && { retryAfterSeconds }) }),
    });
    const refused = sender(rpcService({ access }));
    for (const body of [call('getGlobal'), { jsonrpc: '2.0', id: 1, method: 'tools/list' }]) {
      const { json } = await refused(body);
      expect(json.error).toMatchObject({ code: -32000, message: `${status}: no` });
      expect(toolFailureDataSchema.parse(json.error.data)).toEqual({
        status,
        ...(retryAfterSeconds && { retryAfterSeconds }),
      });
    }
  });

  it('contain a waiting time while the source is unavailable', async () => {
    const data = { coins: () => Promise.reject(new Error('gone')) };
    const { json } = await sender(rpcService({ data, isUnavailable: () => true, onError: () => undefined }))(
      call('getCoins'),
    );
    expect(json.error).toEqual({
      code: -32000,
      message: '503: the database is unavailable; try again in a few seconds',
      data: { status: 503, retryAfterSeconds: 5 },
    });
  });

  it('hide the text of an unexpected error', async () => {
    const errors: unknown[] = [];
    const boom = new Error('the password is hunter2');
    const broken = sender(
      rpcService({
        data: { coins: () => Promise.reject(boom) },
        onError: (error, where) => {
          errors.push(error, where);
        },
      }),
    );
    const { status, json } = await broken(call('getCoins'));
    expect([status, json.error.code, json.error.message]).toEqual([
      200,
      -32603,
      '500: An unexpected server error has occurred',
    ]);
    expect(errors).toEqual([boom, 'tools/call getCoins']);
  });
});

describe('plans hold for tools as for REST', () => {
  const { access, asked } = countingAccess({
    admit: (_caller, about) => {
      asked.push(about);
      return { kind: 'admitted', plan: 'free' };
    },
  });
  const free = sender(rpcService({ access }));

  it('the free plan gets no circulating supply', async () => {
    for (const ticker of [
      await outputOf('getTickersById', { coinId: 'btc-bitcoin' }, free),
      ...(await outputOf('getTickers', {}, free)),
      await outputOf('getTickerByContract', ASKED.getTickerByContract, free),
    ]) {
      expect(ticker).not.toHaveProperty('circulating_supply');
    }
    expect(await outputOf('getTickersById', { coinId: 'btc-bitcoin' })).toHaveProperty('circulating_supply');
  });

  it('each tool call is admitted as one request, and the rest of a body once', async () => {
    asked.length = 0;
    await free(call('getGlobal'));
    await free(call('nonsense'));
    await free(call('getCoinById', {}));
    expect(asked).toEqual(['data', 'data', 'data']);
    asked.length = 0;
    await free([call('getGlobal'), { jsonrpc: '2.0', id: 2, method: 'tools/list' }, call('getCoins'), 5]);
    expect(asked).toEqual(['account', 'data', 'data']);
    asked.length = 0;
    await free([call('getGlobal'), call('getCoins')]);
    expect(asked).toEqual(['data', 'data']);
    asked.length = 0;
    await free({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    await free([{ jsonrpc: '2.0', method: 'tools/call', params: { name: 'getGlobal' } }]);
    await free('{');
    expect(asked).toEqual(['account', 'account', 'account']);
  });

  it.each([
    [429, 'JSON-RPC', {}],
    [403, 'JSON-RPC', {}],
    [429, 'MCP', { Accept: 'application/json, text/event-stream' }],
    [403, 'MCP', { Accept: 'application/json, text/event-stream' }],
  ] as const)(
    'a call admits nothing else: a refusal with %d is for the whole batch (%s)',
    async (status, _, headers) => {
      const { access } = countingAccess({ admit: () => ({ kind: 'rejected', status, message: 'no' }) });
      const list = { jsonrpc: '2.0', method: 'tools/list' };
      const initialize = {
        jsonrpc: '2.0',
        id: 'i',
        method: 'initialize',
        params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
      };
      for (const batch of [
        [
          call('getGlobal'),
          ...Array.from({ length: 18 }, (_, id) => ({ ...list, id })),
          { ...list, id: 'p', method: 'ping' },
        ],
        [{ ...list, id: 'first' }, call('getGlobal')],
        [call('getGlobal'), initialize],
      ]) {
        const { json } = await sender(rpcService({ access }))(batch, headers);
        const answers = [json].flat();
        expect(answers.filter((answer) => 'result' in answer)).toEqual([]);
        for (const { error } of answers) expect(error).toMatchObject({ message: `${status}: no`, data: { status } });
      }
    },
  );

  it.each([
    ['no tool', {}, { params: {} }],
    ['no object', {}, { params: { name: 'getCoins', arguments: 'x' } }],
    ['an unknown revision', { 'MCP-Protocol-Version': '1999-01-01' }, { params: { name: 'getGlobal', arguments: {} } }],
  ])('MCP calls that never reach a tool still cost a key check and a token: %s', async (_, headers, wrong) => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', ...wrong };
    const mcp = { 'MCP-Protocol-Version': '2025-06-18', Accept: 'application/json, text/event-stream', ...headers };
    const letIn = countingAccess({});
    const { json } = await sender(rpcService({ access: letIn.access }))(body, mcp);
    expect([json.error.code < 0, letIn.asked]).toEqual([true, ['account']]);
    const { access } = countingAccess({ admit: () => ({ kind: 'rejected', status: 403, message: 'no' }) });
    const refused = await sender(rpcService({ access }))(body, mcp);
    expect([refused.json.id, refused.json.error.message]).toEqual([1, '403: no']);
  });

  it('the caller is identified by key and address', async () => {
    const callers: unknown[] = [];
    const { access } = countingAccess({
      admit: (caller) => {
        callers.push(caller);
        return { kind: 'admitted', plan: 'pro' };
      },
    });
    await sender(rpcService({ access }))(call('getGlobal'), { Authorization: 'Bearer abc' });
    expect(callers).toEqual([{ key: 'abc', scheme: 'bearer', address: '10.0.0.7' }]);
  });
});

describe('JSON-RPC 2.0', () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

  it.each(['abc', '', 0, -5, 1.5, 9_007_199_254_740_991, null])('echoes the id %j', async (id) => {
    const { status, json } = await post({ ...ping, id });
    expect([status, json]).toEqual([200, { jsonrpc: '2.0', id, result: {} }]);
  });

  it.each(['true', '[]', '12345678901234567890', '1e999'])('says which ids are allowed when it is %s', async (id) => {
    const { json } = await post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    expect(json.error.message).toContain('id: expected string, number (below 2^53) or null, got ');
  });

  it.each([
    ['{', 400, -32700, null],
    ['', 400, -32700, null],
    ['{"jsonrpc":"2.0","id":1,"method":"ping"} x', 400, -32700, null],
    ['"ping"', 400, -32600, null],
    ['null', 400, -32600, null],
    ['{}', 400, -32600, null],
    ['[]', 400, -32600, null],
    ['{"id":4,"method":"ping"}', 400, -32600, 4],
    ['{"jsonrpc":"1.0","id":4,"method":"ping"}', 400, -32600, 4],
    ['{"jsonrpc":"2.0","id":4}', 400, -32600, 4],
    ['{"jsonrpc":"2.0","id":4,"result":{}}', 400, -32600, 4],
    ['{"jsonrpc":"2.0","id":4,"method":5}', 400, -32600, 4],
    ['{"jsonrpc":"2.0","id":4,"method":"ping","params":"x"}', 400, -32600, 4],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600, null],
    ['{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600, null],
    ['{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 400, -32600, null],
    ['{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}', 400, -32600, null],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/burn"}', 200, -32601, 1],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}', 200, -32602, 1],
    [`${'['.repeat(65)}${']'.repeat(65)}`, 400, -32600, null],
    [`{"a":${'['.repeat(200_000)}`, 400, -32600, null],
  ])('answers %.60s with its error', async (text, status, code, id) => {
    const answer = await post(text);
    expect([answer.status, answer.json.error.code, answer.json.id]).toEqual([status, code, id]);
    expect(rpcResponseSchema.safeParse(answer.json).success).toBe(true);
  });

  it('answers a batch message by message, in any mixture', async () => {
    const { status, json } = await post([
      { ...ping, id: 'a' },
      { jsonrpc: '2.0', method: 'ping' },
      1,
      call('getGlobal', {}, 'b'),
      { ...ping, id: 'c', method: 'nope' },
    ]);
    expect(status).toBe(200);
    expect(json.map((answer: { id: unknown; error?: { code: number } }) => [answer.id, answer.error?.code])).toEqual([
      ['a', undefined],
      [null, -32600],
      ['b', undefined],
      ['c', -32601],
    ]);
  });

  it('answers each message of an invalid batch, and refuses a batch that is too long', async () => {
    const garbage = await post([1, 2, 3]);
    expect([garbage.status, garbage.json.map((answer: { error: { code: number } }) => answer.error.code)]).toEqual([
      400,
      [-32600, -32600, -32600],
    ]);
    const most = await post(Array.from({ length: MAX_BATCH }, () => ping));
    expect([most.status, most.json.length]).toEqual([200, MAX_BATCH]);
    const tooMany = await post(Array.from({ length: MAX_BATCH + 1 }, () => ping));
    expect([tooMany.status, tooMany.json.error.code, tooMany.json.error.message]).toEqual([
      400,
      -32600,
      'invalid request: a batch has at most 20 messages, this one has 21',
    ]);
  });

  it('answers notifications with nothing', async () => {
    for (const body of [{ jsonrpc: '2.0', method: 'ping' }, [{ jsonrpc: '2.0', method: 'anything' }]]) {
      const { status, json } = await post(body);
      expect([status, json]).toEqual([202, null]);
    }
  });
});

describe('a request to /rpc', () => {
  const ask = (init: RequestInit) => rpcService()(new Request('http://service/rpc', init));

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'])('is refused with the method %s', async (method) => {
    const answer = await ask({ method });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', ''])(
    'is refused with content of type "%s"',
    async (type) => {
      const answer = await ask({ method: 'POST', headers: { 'Content-Type': type }, body: '{}' });
      expect(answer.status).toBe(415);
      expect(((await answer.json()) as { error: { code: number } }).error.code).toBe(-32600);
    },
  );

  it('is refused with a compressed body, or one that is too large, whether announced or not', async () => {
    expect((await post('{}', { 'Content-Encoding': 'gzip' })).status).toBe(415);
    const large = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(300_000) } });
    expect((await post(large)).status).toBe(413);
    expect((await post('{}', { 'Content-Length': '1000000' })).status).toBe(413);
  });

  it('is refused from web pages of other origins, unless the operator allows them', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const known = sender(rpcService({ origins: ['https://app.example'] }));
    const statuses = async (via: typeof post, origins: string[]) =>
      Promise.all(origins.map(async (Origin) => (await via(body, { Origin })).status));
    const strangers = [
      'https://evil.example',
      'http://service',
      'null',
      'http://localhost.evil.example',
      'file://',
      'x',
    ];
    expect(new Set(await statuses(post, strangers))).toEqual(new Set([403]));
    expect(await statuses(post, ['http://localhost:5173', 'http://127.0.0.1', 'https://[::1]:8080'])).toEqual([
      200, 200, 200,
    ]);
    expect(await statuses(known, ['https://app.example', 'https://app.example:8443'])).toEqual([200, 403]);
    expect(await statuses(sender(rpcService({ origins: ['*'] })), strangers.slice(0, 2))).toEqual([200, 200]);
  });

  it('is answered as the preflight of a web page', async () => {
    const answer = await ask({ method: 'OPTIONS' });
    expect([answer.status, answer.headers.get('access-control-allow-headers')]).toEqual([
      204,
      expect.stringContaining('MCP-Protocol-Version'),
    ]);
  });

  it('is accepted as JSON in UTF-8 with a charset, and in no other encoding', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'ü', method: 'ping' });
    expect((await post(body, { 'Content-Type': 'Application/JSON; charset=utf-8' })).json.id).toBe('ü');
    const answer = await ask({
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: Buffer.from(body, 'latin1'),
    });
    expect([answer.status, ((await answer.json()) as { error: { code: number } }).error.code]).toEqual([400, -32700]);
  });
});
