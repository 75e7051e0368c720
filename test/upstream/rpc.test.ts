import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Answer, RpcCall } from '../../src/upstream/answer.ts';
import { createRpcClient } from '../../src/upstream/client.ts';

type Sent = {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
};
const CALL: RpcCall = { method: 'tools/call', tool: 'getTagById', arguments: { tagId: 'x' } };
const HOST = 'https://tools.example';

/** What the client makes of an answer. Also checks that it sent one request. */
async function ask(
  answer: (sent: Sent) => Response | Promise<Response>,
  { rpc = CALL, path = '', absolute = false, rpcUrl = `${HOST}/json-rpc`, key = null as string | null } = {},
): Promise<{ readonly answer: Answer; readonly sent: Sent }> {
  const all: Sent[] = [];
  const client = createRpcClient({
    rpcUrl,
    baseUrl: 'https://api.example/v1',
    key,
    clock: systemClock,
    fetch: async (request) => {
      const { url, method, headers } = request;
      all.push({ url, method, headers, body: (await request.json()) as Record<string, unknown> });
      return answer(all.at(-1)!);
    },
  });
  const got = await client.send({ path, absolute, rpc, withText: true });
  expect(all).toHaveLength(1);
  return { answer: got, sent: all[0]! };
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers });
const result =
  (text: string, more: object = {}) =>
  (sent: Sent) =>
    json({ jsonrpc: '2.0', id: sent.body.id, result: { content: [{ type: 'text', text }], ...more } });
const error = (code: number, message: string, data?: unknown) => (sent: Sent) =>
  json({ jsonrpc: '2.0', id: sent.body.id, error: { code, message, data } });

test('a call is one POST of JSON-RPC 2.0, and its answer holds the data of the tool with their original text', async () => {
  const text = '{\n  "id": "x", "name":"X","n": 1.50 }';
  const { answer, sent } = await ask(result(text));
  expect(sent).toMatchObject({
    url: `${HOST}/json-rpc`,
    method: 'POST',
    body: { jsonrpc: '2.0', method: 'tools/call', params: { name: 'getTagById', arguments: { tagId: 'x' } } },
  });
  expect(sent.headers.get('content-type')).toBe('application/json');
  expect(answer).toMatchObject({ kind: 'answered', body: { id: 'x', name: 'X', n: 1.5 }, text });
});

test('no number of the data silently becomes 0, and their text stays as it is', async () => {
  const text = '{"id":"x","price":1e-400,"change":-0}';
  const { answer } = await ask(result(text));
  expect(answer).toMatchObject({ kind: 'answered', body: { price: '1e-400 (too small)', change: 0 }, text });
});

test('the envelope of a self-hosted server is removed, and nothing else', async () => {
  const { answer } = await ask(result('{ "data": [ {"id":"x" , "n":1e-07} ], "meta": {"cached": false} }'));
  expect(answer).toMatchObject({ kind: 'answered', text: '[ {"id":"x" , "n":1e-07} ]' });
  const { answer: record } = await ask(result('{"id":"data","data":1,"meta":{}}'));
  expect(record).toMatchObject({ kind: 'answered', text: '{"id":"data","data":1,"meta":{}}' });
});

test('the list of tools is read, with the cursor of the next page', async () => {
  const tools = [{ name: 'getTags', inputSchema: { type: 'object', required: ['rationale'] } }];
  const { answer, sent } = await ask(
    (s) => json({ jsonrpc: '2.0', id: s.body.id, result: { tools, nextCursor: 'b' } }),
    {
      rpc: { method: 'tools/list', cursor: 'a' },
    },
  );
  expect(sent.body).toMatchObject({ method: 'tools/list', params: { cursor: 'a' } });
  expect(answer).toMatchObject({ kind: 'answered', body: { tools, nextCursor: 'b' } });
});

const FAILURES: [string, (sent: Sent) => Response, object][] = [
  [
    'a wrong id',
    (s) => json({ jsonrpc: '2.0', id: Number(s.body.id) + 1, result: {} }),
    { kind: 'malformed', message: /the id 2 where 1/ },
  ],
  ['no id', () => json({ jsonrpc: '2.0', result: {} }), { kind: 'malformed' }],
  ['another protocol', () => json({ id: 1, name: 'x' }), { kind: 'malformed', astray: true }],
  ['a list', () => json([]), { kind: 'malformed' }],
  [
    'a web page',
    () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    { kind: 'malformed', astray: true },
  ],
  ['no content', (s) => json({ jsonrpc: '2.0', id: s.body.id, result: {} }), { kind: 'malformed', message: /content/ }],
  ['empty content', (s) => json({ jsonrpc: '2.0', id: s.body.id, result: { content: [] } }), { kind: 'malformed' }],
  [
    'a picture',
    (s) => json({ jsonrpc: '2.0', id: s.body.id, result: { content: [{ type: 'image', data: '' }] } }),
    { kind: 'malformed' },
  ],
  ['a text that is not JSON', result('Here are your tags:'), { kind: 'malformed', message: /not JSON: Here are/ }],
  ['a bare value', result('42'), { kind: 'malformed' }],
  ['an empty envelope', result('{"data":null,"meta":{}}'), { kind: 'malformed' }],
  ['an unknown id', error(-32000, '404: id not found'), { kind: 'refused', reason: 'unknown id' }],
  [
    'an unknown id, told in data',
    error(-32000, 'no such tag', { status: 404 }),
    { kind: 'refused', reason: 'unknown id' },
  ],
  ['a bad question', error(-32000, '400: invalid parameters'), { kind: 'refused', reason: 'bad request' }],
  [
    'a wrong argument',
    error(-32602, 'Input validation error: expected string, received undefined'),
    { kind: 'refused', reason: 'bad request' },
  ],
  [
    'a wrong argument with a number in it',
    error(-32602, 'limit must be at most 500'),
    { kind: 'refused', reason: 'bad request' },
  ],
  [
    'no such tool',
    error(-32602, 'MCP error -32602: Tool getTagById not found'),
    { kind: 'refused', reason: 'unknown route' },
  ],
  ['no such method', error(-32601, 'Method not found'), { kind: 'refused', reason: 'unknown route' }],
  ['a refusal', error(-32000, '403: invalid api key'), { kind: 'refused', reason: 'forbidden' }],
  ['a spent month', error(-32000, '402: you have reached maximum request limit'), { kind: 'limited', by: 'quota' }],
  [
    'a plan that is too small',
    error(-32603, 'Request failed with status code 402: this endpoint requires a paid plan'),
    { kind: 'refused', reason: 'history limit' },
  ],
  [
    'a history limit',
    error(-32000, '402: Getting minute historical data is not allowed in this plan'),
    { kind: 'refused', reason: 'history limit', notBefore: null },
  ],
  [
    'too fast',
    error(-32000, '429: you have reached maximum request limit', { status: 429, retryAfterSeconds: 7 }),
    { kind: 'limited', by: 'rate', retryAfterMs: 7_000 },
  ],
  ['a broken server', error(-32603, 'Internal error'), { kind: 'unavailable' }],
  ['a server behind that is down', error(-32000, '503: try later'), { kind: 'unavailable' }],
  ['an error that is none', error('x' as never, 'y'), { kind: 'malformed' }],
  [
    'a question that was not understood',
    () => json({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }, 400),
    { kind: 'refused', reason: 'bad request' },
  ],
  [
    'a tool that says it is paid',
    result('{"error":"paid_endpoint","required_plan":"Starter+"}'),
    { kind: 'refused', reason: 'history limit', message: /Starter/ },
  ],
  [
    'CP402',
    result('{"error":{"code":"CP402_INSUFFICIENT_PLAN","message":"This endpoint requires a paid plan"}}'),
    { kind: 'refused', reason: 'history limit' },
  ],
  [
    'CP400',
    result('{"error":{"code":"CP400_INVALID_COIN_ID","message":"Coin ID \'BTC\' is invalid"}}'),
    { kind: 'refused', reason: 'bad request' },
  ],
  [
    'CP403',
    result('{"error":{"code":"CP403_FORBIDDEN","message":"This endpoint is not available on the free tier"}}'),
    { kind: 'refused', reason: 'forbidden' },
  ],
  [
    'CP404',
    result('{"error":{"code":"CP404_NOT_FOUND","message":"Resource not found"}}'),
    { kind: 'refused', reason: 'unknown id' },
  ],
  [
    'CP429',
    result(
      '{"error":{"code":"CP429_RATE_LIMIT","message":"Daily rate limit of 10,000 requests exceeded","metadata":{"retry_after_seconds":30}}}',
    ),
    { kind: 'limited', by: 'rate', retryAfterMs: 30_000 },
  ],
  [
    'CP500',
    result('{"error":{"code":"CP500_SERVER_ERROR","message":"Internal server error"}}'),
    { kind: 'unavailable' },
  ],
  [
    'an error of a tool, marked as one',
    result('Request failed with status code 429', { isError: true }),
    { kind: 'limited', by: 'rate' },
  ],
  ['an unknown id as REST words it', result('{"error":"id not found"}'), { kind: 'refused', reason: 'unknown id' }],
  [
    '429',
    () => json({ error: 'you have reached maximum request limit' }, 429, { 'Retry-After': '5' }),
    { kind: 'limited', by: 'rate', retryAfterMs: 5_000 },
  ],
  ['402', () => json({ error: 'x' }, 402), { kind: 'limited', by: 'quota' }],
  ['403', () => json({ error: 'x' }, 403), { kind: 'refused', reason: 'forbidden' }],
  ['404', () => new Response('404 page not found', { status: 404 }), { kind: 'refused', reason: 'unknown route' }],
  [
    '502',
    () => new Response('<html>', { status: 502, headers: { 'content-type': 'text/html' } }),
    { kind: 'unavailable' },
  ],
];

test.each(FAILURES)('the client classifies %s', async (_, answer, meaning) => {
  const { message, ...rest } = meaning as { message?: RegExp };
  const { answer: got } = await ask(answer);
  expect(got).toMatchObject(rest);
  if (message) expect('message' in got ? got.message : '').toMatch(message);
});

test('the key is sent to the origin of REST, and to no other', async () => {
  const sent = async (rpcUrl: string) =>
    (await ask(result('{"id":"x"}'), { rpcUrl, key: 'secret-key' })).sent.headers.get('authorization');
  expect(await sent('https://api.example/rpc')).toBe('Bearer secret-key');
  expect(await sent('https://tools.example/rpc')).toBeNull();
  expect(await sent('http://api.example/rpc')).toBeNull();
});

test('a redirect is reported and not followed; within the origin the same call may be sent to it', async () => {
  const moved = (location: string) => () => new Response(null, { status: 308, headers: { location } });
  expect((await ask(moved('/rpc/'))).answer).toMatchObject({ kind: 'moved', path: '/rpc/' });
  expect((await ask(moved('https://elsewhere.example/rpc'))).answer).toMatchObject({ kind: 'malformed', astray: true });
  const { sent } = await ask(result('{"id":"x"}'), { path: '/rpc/', absolute: true });
  expect(sent).toMatchObject({ url: `${HOST}/rpc/`, method: 'POST', body: { method: 'tools/call' } });
});

test('over real sockets, a call is one request with a complete body, and its answer is bounded', async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      bodies.push(body);
      const { id } = JSON.parse(body) as { id: number };
      const text = id === 2 ? `"${'x'.repeat(3000)}"` : '{"id":"x"}';
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createRpcClient({
    rpcUrl: `${url}/rpc`,
    baseUrl: `${url}/v1`,
    key: null,
    clock: systemClock,
    maxBytes: 2_000,
  });
  try {
    expect(await client.send({ path: '', rpc: CALL })).toMatchObject({ kind: 'answered', body: { id: 'x' } });
    expect(await client.send({ path: '', rpc: CALL })).toMatchObject({ kind: 'malformed', astray: false });
    expect(bodies.map((body) => JSON.parse(body))).toMatchObject([{ id: 1 }, { id: 2 }]);
  } finally {
    await client.close();
    await new Promise((resolve) => server.close(resolve));
  }
});
