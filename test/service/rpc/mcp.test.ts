import { Client as Client2026, StreamableHTTPClientTransport as Transport2026 } from '@modelcontextprotocol/client';
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTED_TOOLS } from '../../../src/contract/interface/hosted-tools.ts';
import { TOOL_NAMES } from '../../../src/contract/interface/tools.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { countingAccess, rpcService } from '../../support/rpc-service.ts';

const { access, asked } = countingAccess({
  admit: (caller, about) => {
    asked.push(about);
    if (caller.key === 'spent')
      return { kind: 'rejected', status: 402, message: 'you have reached maximum request limit' };
    if (caller.key !== null && caller.key !== 'good')
      return { kind: 'rejected', status: 403, message: 'invalid api key' };
    return { kind: 'admitted', plan: 'free' };
  },
});
const errors: unknown[] = [];
let server: Listening;
let address: URL;
beforeAll(async () => {
  const onError = (error: unknown) => {
    errors.push(error);
  };
  server = await listen(rpcService({ access, onError }), { host: '127.0.0.1', port: 0, onError });
  address = new URL('/rpc', server.url);
});
afterAll(async () => {
  await server?.close();
  expect(errors).toEqual([]);
});

const info = { name: 'test', version: '1' };
const withKey = (key?: string) =>
  key === undefined ? {} : { requestInit: { headers: { Authorization: `Bearer ${key}` } } };

/** The official SDK in its old and new version; the new one uses the old protocol by default. */
const CLIENTS = {
  'the SDK 1': async (key?: string) => {
    const client = new Client2025(info);
    // The declared type of the transport is looser than the parameter.
    await client.connect(new Transport2025(address, withKey(key)) as Parameters<typeof client.connect>[0]);
    return client;
  },
  'the SDK 2 by handshake': async (key?: string) => {
    const client = new Client2026(info, { versionNegotiation: { mode: 'legacy' } });
    await client.connect(new Transport2026(address, withKey(key)));
    return client;
  },
  'the SDK 2 without a handshake': async (key?: string) => {
    const client = new Client2026(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new Transport2026(address, withKey(key)));
    return client;
  },
};

it.each(['/rpc', '/json-rpc', '/streamable-http'])('the MCP endpoint is at %s', async (path) => {
  const client = new Client2026(info, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(new Transport2026(new URL(path, server.url)));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expect.arrayContaining([...TOOL_NAMES]));
  await client.close();
});

it.each([{}, { protocolVersion: 1 }, { protocolVersion: '2025-06-18', clientInfo: info, capabilities: [] }])(
  'an initialize with invalid params is rejected: %j',
  async (params) => {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params }),
    });
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32602 } });
  },
);

describe.each(Object.entries(CLIENTS))('an MCP client: %s', (name, connect) => {
  const isModern = name.endsWith('without a handshake');

  it('connects with the address alone, and gets the name of the server', async () => {
    const client = await connect();
    expect(client.getServerVersion()).toMatchObject({ name: 'chandler', title: 'Chandler' });
    expect(client.getServerCapabilities()).toMatchObject({ tools: {} });
    expect(client.getInstructions()).toMatch(/btc-bitcoin/);
    if (!isModern) expect(await client.ping()).toEqual({});
    await client.close();
  });

  it('lists the tools with JSON Schema for input and output', async () => {
    const client = await connect();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual([...TOOL_NAMES, ...Object.keys(HOSTED_TOOLS)]);
    for (const tool of tools) {
      expect(tool.inputSchema.type).toBe('object');
      if (!isModern) expect(tool.outputSchema?.type).toBe('object');
      expect(tool.annotations).toMatchObject({ readOnlyHint: true });
    }
    await client.close();
  });

  it('calls tools, and their output matches the schema', async () => {
    const client = await connect();
    // After listing the tools, the client checks each result against its output schema.
    await client.listTools();
    const ticker = await client.callTool({ name: 'getTickersById', arguments: { coinId: 'btc-bitcoin' } });
    expect(ticker.isError).toBeFalsy();
    expect(ticker.structuredContent).toMatchObject({ id: 'btc-bitcoin', quotes: { USD: {} } });
    expect(ticker.structuredContent).not.toHaveProperty('circulating_supply');
    expect(textOf(ticker)).toEqual(ticker.structuredContent);
    const coins = await client.callTool({ name: 'getCoins', arguments: { limit: 2 } });
    // Before the revision of 2026, a result that is no object was wrapped into one.
    const listed = isModern ? coins.structuredContent : (coins.structuredContent as { result: unknown }).result;
    expect(listed).toHaveLength(2);
    expect(textOf(coins)).toEqual(listed);
    await client.close();
  });

  it('shows the model why a tool failed', async () => {
    const client = await connect();
    for (const [tool, given, message] of [
      ['getCoinById', { coinId: 'no-nowhere' }, /^404: id not found$/],
      ['getCoinById', { coinId: 'BTC' }, /^404: id not found$/],
      ['getCoinById', {}, /^400: invalid parameters: coinId is required/],
      ['getTickers', { quotes: 'A,B,C,D' }, /^400: Max number of quotes is 3$/],
    ] as const) {
      const result = await client.callTool({ name: tool, arguments: given });
      expect(result.isError).toBe(true);
      expect((result.content as { text: string }[])[0]?.text).toMatch(message);
    }
    await expect(client.callTool({ name: 'getTicker', arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await client.close();
  });

  it('spends one request of the quota for each call, and none for connecting', async () => {
    asked.length = 0;
    const client = await connect('good');
    await client.listTools();
    expect(asked).not.toContain('data');
    await client.callTool({ name: 'getGlobal', arguments: {} });
    expect(asked.filter((about) => about === 'data')).toHaveLength(1);
    await client.close();
  });

  it('cannot connect with a wrong key', async () => {
    await expect(connect('wrong')).rejects.toThrow(/invalid api key|403/);
  });
});

function textOf(result: object): unknown {
  const { content } = result as { content: { type: string; text: string }[] };
  return JSON.parse(content[0]!.text);
}

describe('streamable HTTP without a session', () => {
  const send = async (body: unknown, headers: Record<string, string> = {}, method = 'POST') => {
    const answer = await fetch(address, {
      method,
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      ...(method === 'POST' ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, json: text === '' ? null : JSON.parse(text) };
  };
  const initialize = (protocolVersion: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: info },
  });

  it('negotiates the version, also with callers that accept only JSON', async () => {
    for (const [asks, gets] of [
      ['2025-06-18', '2025-06-18'],
      ['2024-11-05', '2024-11-05'],
      ['1999-01-01', '2025-11-25'],
    ] as const) {
      const { status, headers, json } = await send(initialize(asks), { Accept: 'application/json' });
      expect([status, headers.get('mcp-session-id'), json.result.protocolVersion]).toEqual([200, null, gets]);
    }
  });

  it('has neither a stream to read nor a session to end', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await send(null, {}, method);
      expect([status, headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  it('answers notifications with 202 and no body', async () => {
    const { status, json } = await send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([status, json]).toEqual([202, null]);
  });

  it('answers a batch in full, also requests that a notification of the same batch cancels', async () => {
    const { status, json } = await send([
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'getGlobal', arguments: {} } },
      { jsonrpc: '2.0', id: 2, method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    ]);
    expect(status).toBe(200);
    expect(json).toMatchObject([
      { id: 1, result: { structuredContent: {} } },
      { id: 2, result: {} },
    ]);
    const none = await send([{ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }]);
    expect([none.status, none.json]).toEqual([202, null]);
  });

  it('answers each request of a batch, in an array, also one alone and two with the same id', async () => {
    const ping = { jsonrpc: '2.0', id: 'a', method: 'ping' };
    const call = { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: { name: 'getGlobal', arguments: {} } };
    const alone = await send([ping]);
    expect([alone.status, alone.json]).toEqual([200, [{ jsonrpc: '2.0', id: 'a', result: {} }]]);
    const { status, json } = await send([ping, call, { ...ping, id: 0 }, { ...ping, method: 'nope' }]);
    expect(status).toBe(200);
    expect(json).toMatchObject([
      { id: 'a', result: {} },
      { id: 'a', result: { structuredContent: {} } },
      { id: 0, result: {} },
      { id: 'a', error: { code: -32601 } },
    ]);
    const refused = await send([ping, ping], { 'MCP-Protocol-Version': '1.0' });
    expect([refused.status, refused.json.id]).toEqual([400, null]);
  });

  it('answers with one JSON document, never with a stream that stays open', async () => {
    const { headers, json } = await send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(headers.get('content-type')).toBe('application/json');
    expect(json.result.tools).toHaveLength(31);
    const listening = await send(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'subscriptions/listen',
        params: {
          notifications: { toolsListChanged: true },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
            'io.modelcontextprotocol/clientInfo': info,
          },
        },
      },
      { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' },
    );
    expect(listening.json.error.code).toBe(-32601);
  });

  it('rejects an unknown protocol version', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await send(ping, { 'MCP-Protocol-Version': '2025-06-18' })).status).toBe(200);
    expect((await send(ping, { 'MCP-Protocol-Version': '1.0' })).status).toBe(400);
  });

  it('rejects web pages of other origins', async () => {
    expect((await send(initialize('2025-06-18'), { Origin: 'http://evil.example' })).status).toBe(403);
    expect((await send(initialize('2025-06-18'), { Origin: 'http://localhost:3000' })).status).toBe(200);
  });

  it('reports an exhausted month, but still lists the tools', async () => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'getGlobal', arguments: {} } };
    const { status, json } = await send(call, { Authorization: 'spent' });
    expect([status, json.result]).toEqual([
      200,
      { isError: true, content: [{ type: 'text', text: '402: you have reached maximum request limit' }] },
    ]);
  });
});
