/** Malformed requests to `/rpc`, generated: never a server error, never a hang, and the right code for what is wrong. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOOL_NAMES } from '../../../src/contract/interface/tools.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { rpcResponseSchema } from '../../support/rpc-response.ts';
import { rpcService } from '../../support/rpc-service.ts';

const errors: unknown[] = [];
const onError = (error: unknown) => {
  errors.push(error);
};
const service = rpcService({ onError });
const MCP = { Accept: 'application/json, text/event-stream' };
const HEADERS: readonly Record<string, string>[] = [
  {},
  MCP,
  { ...MCP, 'MCP-Protocol-Version': '2025-11-25' },
  { ...MCP, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'getCoins' },
  { 'MCP-Protocol-Version': '2026-07-28' },
  { 'MCP-Protocol-Version': 'x', 'Mcp-Method': 'y' },
];

/** The status and the body of the answer. Fails on a server error, and on a body that is not JSON-RPC. */
async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) {
  const answer = await service(
    new Request('http://service/rpc', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body,
    }),
  );
  expect(answer.status).toBeLessThan(500);
  const text = await answer.text();
  const json: unknown = text === '' ? null : JSON.parse(text);
  for (const one of Array.isArray(json) ? json : [json]) {
    if (one !== null) expect(rpcResponseSchema.safeParse(one), text).toMatchObject({ success: true });
  }
  expect(errors).toEqual([]);
  return { status: answer.status, json };
}
const codesOf = (json: unknown) =>
  (Array.isArray(json) ? json : [json]).map((one: { error?: { code: number } } | null) => one?.error?.code);

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    1e308,
    -0,
    2 ** 53,
    2 ** 64,
    '\u0000',
    '\ud800',
    '__proto__',
    { __proto__: 1 },
    [[[[]]]],
    '',
  ),
);
const headers = fc.constantFrom(...HEADERS);
const method = fc.constantFrom<unknown>('tools/call', 'tools/list', 'ping', 'initialize', 'x', '', null, 1);
const name = fc.oneof(fc.constantFrom<unknown>(...TOOL_NAMES), anything);
const ARGUMENTS = ['coinId', 'limit', 'quotes', 'q', 'categories', 'modifier', 'amount', 'tagId', 'additionalFields'];
const given = fc.oneof(anything, fc.dictionary(fc.constantFrom(...ARGUMENTS), anything));
const message = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 4, arbitrary: fc.constant<unknown>('2.0') }, { weight: 1, arbitrary: anything }),
    id: fc.oneof(fc.constantFrom<unknown>(1, 'a', null), anything),
    method: fc.oneof({ weight: 4, arbitrary: method }, { weight: 1, arbitrary: anything }),
    params: fc.oneof(
      fc.record({ name, arguments: given, _meta: anything }, { requiredKeys: ['name'] }),
      fc.record({
        _meta: fc.record({
          'io.modelcontextprotocol/protocolVersion': fc.oneof(fc.constant<unknown>('2026-07-28'), anything),
          'io.modelcontextprotocol/clientCapabilities': fc.oneof(fc.constant<unknown>({}), anything),
        }),
        name,
        arguments: given,
      }),
      anything,
    ),
  },
  { requiredKeys: [] },
);

const RUNS = { numRuns: 400, seed: 20_260_728 };

describe('generated requests get the right code:', () => {
  it('wrong types in every place', () =>
    fc.assert(
      fc.asyncProperty(message, headers, async (body, sent) => {
        await post(JSON.stringify(body), sent);
      }),
      RUNS,
    ));

  it('batches of invalid messages', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(message, anything), { maxLength: 25 }), headers, async (body, sent) => {
        const { status, json } = await post(JSON.stringify(body), sent);
        if (body.length === 0 || body.length > 20) expect([status, codesOf(json)]).toEqual([400, [-32600]]);
      }),
      RUNS,
    ));

  it('JSON that was cut off or has a changed byte', () =>
    fc.assert(
      fc.asyncProperty(message, fc.nat(), fc.nat({ max: 255 }), headers, async (body, at, byte, sent) => {
        const whole = Buffer.from(JSON.stringify({ ...body, jsonrpc: '2.0' }));
        const cut = await post(new Uint8Array(whole.subarray(0, at % whole.length)), sent);
        expect([cut.status, codesOf(cut.json)]).toEqual([400, [-32700]]);
        const changed = new Uint8Array(whole);
        changed[at % whole.length] = byte;
        await post(changed, sent);
      }),
      RUNS,
    ));

  it('bytes that are not JSON', () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), headers, async (bytes, sent) => {
        const { status } = await post(new Uint8Array(bytes), sent);
        expect(status).toBeGreaterThanOrEqual(400);
      }),
      { ...RUNS, numRuns: 200 },
    ));

  it('JSON that is deep, wide or long', async () => {
    for (const sent of HEADERS) {
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ] as const) {
        const deep = await post(`${open.repeat(50_000)}${close.repeat(50_000)}`.slice(0, 200_000), sent);
        expect([deep.status, codesOf(deep.json)]).toEqual([400, [-32600]]);
      }
      expect((await post(`[${'0,'.repeat(100_000)}0]`, sent)).status).toBe(400);
      expect((await post(`"${'a'.repeat(300_000)}"`, sent)).status).toBe(413);
      const long = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x'.repeat(200_000) } };
      expect(JSON.stringify((await post(JSON.stringify(long), sent)).json).length).toBeLessThan(2_000);
    }
  });

  it('content types other than JSON', () =>
    fc.assert(
      fc.asyncProperty(fc.stringMatching(/^[\w/+;= .-]{0,40}$/), async (type) => {
        fc.pre(!/^\s*application\/json\s*(;|$)/i.test(type));
        const { status } = await post('{}', { 'Content-Type': type });
        expect(status).toBe(415);
      }),
      { ...RUNS, numRuns: 200 },
    ));
});

describe('over a socket', () => {
  let server: Listening;
  beforeAll(async () => {
    server = await listen(service, { host: '127.0.0.1', port: 0, onError });
  });
  afterAll(() => server?.close());

  const open = async () => {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), '127.0.0.1');
    // Some of these requests are meant to be cut off.
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const head = (length: number, more = '') =>
    `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`;
  const stillAnswers = async () => {
    const answer = await fetch(`${server.url}/rpc`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    });
    expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  };

  it('callers that disconnect in the middle of a body do not disturb others', async () => {
    for (let i = 0; i < 50; i++) {
      const socket = await open();
      socket.write(`${head(1_000, i % 2 ? 'Accept: text/event-stream\r\n' : '')}{"jsonrpc":"2.0"`);
      if (i % 3 === 0) await wait(2);
      if (i % 5 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
    await stillAnswers();
    expect(errors).toEqual([]);
  });

  it('a body with too large a Content-Length is refused before it is sent', async () => {
    const socket = await open();
    socket.write(head(10_000_000));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
    await stillAnswers();
  });

  it('a body without a length is read only up to the limit', async () => {
    const socket = await open();
    const answered = once(socket, 'data') as Promise<[Buffer]>;
    socket.write(
      'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const chunk = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`;
    for (let i = 0; i < 6; i++) socket.write(chunk);
    expect((await answered)[0].toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
    await stillAnswers();
    expect(errors).toEqual([]);
  });

  it('Node.js itself answers a client that does not send HTTP', async () => {
    const socket = await open();
    socket.write('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello \r\n\r\n');
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 400 /);
    await stillAnswers();
  });
});
