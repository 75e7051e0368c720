import { EventEmitter, once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createScaledClock } from '../../../src/clock.ts';
import { connectionReset, type Handler } from '../../../src/contract/interface/handler.ts';
import { parseProxies } from '../../../src/core/caller/address.ts';
import { CONNECTION_LIMITS, type Listening, type ListenOptions, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';

const open: Listening[] = [];
const errors: unknown[] = [];
const onError = (error: unknown) => {
  errors.push(error);
};
afterEach(async () => {
  errors.length = 0;
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(
  handler: Handler,
  options: Pick<ListenOptions, 'gzip' | 'limits' | 'trustedProxies' | 'addDate'> = {},
): Promise<string> {
  const server = await listen(handler, { host: '127.0.0.1', port: 0, onError, ...options });
  open.push(server);
  return server.url;
}

const long = JSON.stringify(Array.from({ length: 400 }, (_, i) => ({ i })));

/** A request without `fetch`, which hides the encoding. */
async function raw(url: string, headers: Record<string, string>, method = 'GET') {
  const message = request(url, { headers, method }).end();
  const [answer] = await once(message, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return { headers: answer.headers as Record<string, string>, body: Buffer.concat(chunks) };
}

describe('a handler on a port', () => {
  it('gets the request and the address of the client, and its answer arrives unchanged', async () => {
    const url = await serve(async (req, peer) => {
      return new Response(`${req.method} ${new URL(req.url).search} ${peer?.address}`, {
        status: 418,
        headers: { 'X-Tea': 'yes', Date: 'Sat, 01 Jun 2024 12:03:20 GMT' },
      });
    });
    const answer = await fetch(`${url}/v1/x?a=b`);
    expect([answer.status, answer.headers.get('x-tea'), answer.headers.get('date')]).toEqual([
      418,
      'yes',
      'Sat, 01 Jun 2024 12:03:20 GMT',
    ]);
    expect(await answer.text()).toBe('GET ?a=b 127.0.0.1');
  });

  it('gets a request of HTTP/1.0 without a Host, as health checks send it', async () => {
    const url = await serve(
      async (req) => new Response(`${new URL(req.url).pathname} ${req.headers.get('host')}`, { status: 200 }),
    );
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += String(data);
    });
    socket.write('GET /ready HTTP/1.0\r\n\r\n');
    await once(socket, 'close');
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).toMatch(/\r\n\r\n\/ready null$/);
  });

  it('is closed without losing a request that is on the way, and answers no further one of that client', async () => {
    const url = await serve(async () => new Response('yes'));
    const server = open.pop()!;
    const ask = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    const connected = async () => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.write(ask);
      await once(socket, 'data');
      return socket;
    };
    const [client, idle] = await Promise.all([connected(), connected()]);
    client.write(ask);
    const closed = server.close(5_000);
    let heard = '';
    for await (const part of client) heard += String(part);
    expect(heard).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n.*yes$/s);
    // An idle client does not keep the server waiting.
    await Promise.all([closed, once(idle, 'close')]);
    await expect(fetch(url)).rejects.toThrow();
  });

  it('is closed when its last request is answered, although the client would keep the connection', async () => {
    const events = new EventEmitter();
    const handler: Handler = async () => {
      events.emit('asked');
      await once(events, 'closing');
      return new Response('yes');
    };
    const port = Number(new URL(await serve(handler, { limits: { keepAliveMs: 600_000 } })).port);
    const client = connect(port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(events, 'asked');
    const closed = open.pop()!.close(600_000);
    await vi.waitFor(async () => {
      const late = connect(port, '127.0.0.1');
      await expect(once(late, 'connect').finally(() => late.destroy())).rejects.toThrow();
    }, 60_000);
    events.emit('closing');
    const [heard] = await once(client, 'data');
    expect(String(heard)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*yes$/s);
    await Promise.all([closed, once(client, 'close')]);
  });

  it('adds a Date to an answer without one, unless it is told not to', async () => {
    const handler: Handler = async () => new Response('x');
    const [adding, bare] = [await serve(handler), await serve(handler, { addDate: false })];
    const dateOf = async (url: string) => (await raw(url, {})).headers.date;
    expect([typeof (await dateOf(adding)), await dateOf(bare)]).toEqual(['string', undefined]);
  });

  it('compresses for clients that accept it, and only for them', async () => {
    const url = await serve(async () => new Response(long));
    const packed = await raw(url, { 'accept-encoding': 'gzip, deflate' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    for (const accept of ['GZip', 'identity;q=0, gzip;q=0.5'])
      expect((await raw(url, { 'accept-encoding': accept })).headers['content-encoding']).toBe('gzip');
    expect(packed.body.byteLength).toBeLessThan(long.length / 2);
    expect(gunzipSync(packed.body).toString()).toBe(long);
    for (const accept of ['identity', 'gzip;q=0', 'deflate', 'gzip ; q=0.000 , deflate', 'GZIP;Q=0']) {
      const plain = await raw(url, { 'accept-encoding': accept });
      expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual([undefined, long]);
    }
    const never = await serve(async () => new Response(long), { gzip: false });
    expect((await raw(never, { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined();
  });

  it('answers HEAD without a body, with the length of the body', async () => {
    const url = await serve(async () => new Response('twelve bytes', { headers: { 'Content-Type': 'text/plain' } }));
    const { headers, body } = await raw(url, {}, 'HEAD');
    expect([headers['content-type'], headers['content-length'], body.byteLength]).toEqual(['text/plain', '12', 0]);
  });

  it('answers HEAD from the cache as it would answer GET, with the length of the compressed body', async () => {
    const packed = gzipSync(long, { level: 9 });
    const reply = { status: 200, headers: [], body: long, gzip: async () => packed };
    const handler = Object.assign(async () => new Response(long), { fromCache: async () => reply });
    const url = await serve(handler);
    for (const method of ['GET', 'HEAD'])
      expect((await raw(url, { 'accept-encoding': 'gzip' }, method)).headers).toMatchObject({
        'content-encoding': 'gzip',
        'content-length': String(packed.byteLength),
      });
  });

  it('cuts the connection in the middle of the body when the handler asks for it', async () => {
    const url = await serve(async () => {
      throw connectionReset();
    });
    const read = fetch(url).then((answer) => answer.text());
    await expect(read).rejects.toThrow();
  });

  it('keeps a connection open while its handler waits, and tells the handler when the client leaves', async () => {
    const events = new EventEmitter();
    const asked = once(events, 'asked');
    const left = once(events, 'left');
    const url = await serve((req) => {
      events.emit('asked');
      return new Promise((_, reject) => {
        req.signal.addEventListener('abort', () => {
          events.emit('left');
          reject(req.signal.reason);
        });
      });
    });
    const controller = new AbortController();
    const answer = fetch(url, { signal: controller.signal });
    await asked;
    controller.abort();
    await expect(answer).rejects.toThrow();
    await left;
  });

  it('answers 500 when the handler fails otherwise, and continues to serve', async () => {
    let failing = true;
    const url = await serve(async () => {
      if (failing) throw new Error('unexpected');
      return new Response('fine');
    });
    expect((await fetch(url)).status).toBe(500);
    expect(errors).toEqual([expect.objectContaining({ message: 'unexpected' })]);
    failing = false;
    expect(await (await fetch(url)).text()).toBe('fine');
  });

  it('explains that the port is in use', async () => {
    const url = await serve(async () => new Response('x'));
    const port = Number(new URL(url).port);
    await expect(listen(async () => new Response('y'), { host: '127.0.0.1', port, onError })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: the port is taken; choose another one, or stop what uses it`,
    );
  });

  it.each(['192.0.2.1', 'nope.invalid'])(
    'explains that the address %s does not belong to this machine',
    async (host) => {
      const refusal = await listen(async () => new Response('y'), { host, port: 0, onError }).catch((error) => error);
      expect(refusal.message).toBe(`cannot listen on ${host}:0: this machine has no such address`);
      // A command would take such a cause for an error of the connection to the database.
      expect(['ENOTFOUND', 'EAI_AGAIN']).not.toContain(refusal.cause?.code);
    },
  );
});

describe('an address with too many connections', () => {
  const connectTo = (url: string, localAddress?: string) =>
    new Promise<Socket>((resolve, reject) => {
      const where = { port: Number(new URL(url).port), host: '127.0.0.1', ...(localAddress && { localAddress }) };
      const socket = connect(where, () => resolve(socket));
      socket.on('error', reject);
    });
  const heardOf = async (socket: Socket) => {
    let heard = '';
    for await (const part of socket) heard += String(part);
    return heard;
  };

  it('gets a 429, does not lock out other addresses, and is accepted again when it has fewer', async () => {
    const url = await serve(async () => new Response('yes'), { limits: { maxPerAddress: 3 } });
    const held = await Promise.all([1, 2, 3].map(() => connectTo(url)));
    expect(await heardOf(await connectTo(url))).toMatch(
      /^HTTP\/1\.1 429 .*\{"error":"too many connections from this address"\}$/s,
    );
    const other = await connectTo(url, '127.0.0.2');
    other.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await heardOf(other)).toMatch(/^HTTP\/1\.1 200 /);
    held[0]!.destroy();
    await vi.waitFor(async () => expect((await fetch(url, { headers: { Connection: 'close' } })).status).toBe(200), {
      timeout: 60_000,
    });
    for (const socket of held) socket.destroy();
  });

  it('may be a trusted proxy, whose connections belong to many callers', async () => {
    const trusted = parseProxies('127.0.0.1');
    const url = await serve(async () => new Response('yes'), {
      limits: { maxPerAddress: 1 },
      trustedProxies: 'ok' in trusted ? trusted.ok : null,
    });
    const held = await Promise.all([1, 2, 3].map(() => connectTo(url)));
    expect((await fetch(url)).status).toBe(200);
    for (const socket of held) socket.destroy();
  });
});

describe('a client that does not finish', () => {
  const clock = createScaledClock({ speed: 0, startAt: Date.UTC(2024, 5, 1, 12) });
  const limits = { headersMs: 300, requestMs: 600 };
  /** Sends this much and no more. Resolves to everything that arrived until the server closed. */
  const sendHalf = (url: string, half: string) =>
    new Promise<string>((resolve, reject) => {
      let heard = '';
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(half));
      const hung = setTimeout(
        () => socket.destroy(new Error(`the server still waits for the rest of ${half}`)),
        30_000,
      );
      socket.on('data', (data) => {
        heard += data.toString();
      });
      socket.on('error', reject);
      socket.on('close', () => {
        clearTimeout(hung);
        resolve(heard);
      });
    });
  const head = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;

  it.each([
    ['half a line', 'GET /v1/gl'],
    ['half a head', 'GET /v1/global HTTP/1.1\r\nHost:'],
    ['half a body for the tools', `${head('/rpc')}Content-Length: 100\r\n\r\n{"jsonrpc":`],
    ['half a chunk for the tools', `${head('/rpc')}Transfer-Encoding: chunked\r\n\r\nff\r\n{"jsonrpc":`],
    ['half a body that nobody reads', `${head('/v1/global')}Content-Length: 100\r\n\r\n{"a`],
  ])('does not keep a simulator waiting: %s', async (_, half) => {
    const { fetch: handler } = createSimulator({ market: 'made-up', coins: 3, clock, unlimited: true, onError });
    const url = await serve(handler, { limits });
    const heard = await sendHalf(url, half);
    // It gets an answer if the rest is not needed; otherwise a timeout, or nothing.
    expect(heard).toMatch(
      half.includes('/v1/global HTTP/1.1\r\nHost: x') ? /^HTTP\/1\.1 200 / : /^(HTTP\/1\.1 408 .*|$)/,
    );
    expect(errors).toEqual([]);
    expect((await fetch(`${url}/v1/global`)).status).toBe(200);
  });

  it('is disconnected by default, too, but a client may wait long for an answer', () => {
    const { headersMs, requestMs, keepAliveMs, idleMs } = CONNECTION_LIMITS;
    expect(Math.max(headersMs, requestMs, keepAliveMs)).toBeLessThanOrEqual(20_000);
    expect(idleMs).toBeNull();
  });
});
