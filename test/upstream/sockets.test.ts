import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type net from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Upstream } from '../../src/upstream/answer.ts';
import { createUpstream, type UpstreamOptions } from '../../src/upstream/client.ts';
import { SELF_SIGNED } from '../support/self-signed.ts';
import { http, JSON_TYPE, startRawServer } from './raw-server.ts';

function connect(origin: string, options: Partial<UpstreamOptions> = {}): Upstream {
  const upstream = createUpstream({
    baseUrl: `${origin}/v1`,
    key: null,
    clock: systemClock,
    ...options,
  });
  onTestFinished(() => upstream.close());
  return upstream;
}

const ask = { path: '/coins/btc-bitcoin/ohlcv/historical' };

describe('an answer over real sockets', () => {
  it('contains the JSON, with what was observed of the exchange', async () => {
    const body = '[{"open":1.5}]\n';
    const server = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, body)));
    const upstream = connect(server.origin);
    const before = Date.now();
    const answer = await upstream.send({ ...ask, query: { start: '2024-01-01', limit: '366' } });
    expect(answer).toMatchObject({ kind: 'answered', body: [{ open: 1.5 }] });
    expect(answer.exchange).toMatchObject({ status: 200, bytes: Buffer.byteLength(body) });
    expect(answer.exchange.bodySha256).toEqual(createHash('sha256').update(body).digest());
    expect(answer.exchange.sentAt).toBeGreaterThanOrEqual(before);
    // All of it happened since then, however long a busy machine took.
    expect(answer.exchange.durationMs).toBeLessThanOrEqual(Date.now() - before);
    expect(server.heard.map((h) => h.line)).toEqual([
      'GET /v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=366 HTTP/1.1',
    ]);
  });

  it('may be gzipped; hash and size are those of the content', async () => {
    const body = JSON.stringify(Array.from({ length: 500 }, (_, i) => ({ i })));
    const server = await startRawServer((socket) =>
      socket.write(http(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, gzipSync(body))),
    );
    const answer = await connect(server.origin).send(ask);
    expect(server.heard[0]?.headers['accept-encoding']).toBe('gzip');
    expect(answer.kind).toBe('answered');
    expect(answer.exchange.bytes).toBe(body.length);
    expect(answer.exchange.bodySha256).toEqual(createHash('sha256').update(body).digest());
  });

  it('may follow an early hint and arrive in pieces', async () => {
    const body = JSON.stringify(Array.from({ length: 50 }, (_, i) => ({ i })));
    const whole = http(200, JSON_TYPE, body);
    const server = await startRawServer(async (socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n');
      for (let from = 0; from < whole.length; from += 100) {
        socket.write(whole.subarray(from, from + 100));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    const answer = await connect(server.origin).send(ask);
    expect(answer).toMatchObject({ kind: 'answered', body: JSON.parse(body), exchange: { status: 200 } });
    expect(answer.exchange.bytes).toBe(body.length);
    expect(answer.exchange.bodySha256).toEqual(createHash('sha256').update(body).digest());
    expect(server.heard).toHaveLength(1);
  });

  it('keeps its connection open for later requests', async () => {
    const server = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
    const upstream = connect(server.origin);
    for (let i = 0; i < 20; i++) expect((await upstream.send(ask)).kind).toBe('answered');
    expect(server.heard).toHaveLength(20);
    // A connection is free a moment after its answer was read, so a second one may be opened.
    expect(new Set(server.heard.map((h) => h.connection)).size).toBeLessThanOrEqual(2);
  });
});

describe('the key', () => {
  it('is sent as Bearer, or bare on request, and not at all if there is none', async () => {
    const server = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
    const upstream = connect(server.origin, { key: 'secret-1' });
    await upstream.send(ask);
    await upstream.send({ ...ask, scheme: 'bare' });
    await connect(server.origin).send(ask);
    expect(server.heard.map((h) => h.headers.authorization)).toEqual(['Bearer secret-1', 'secret-1', undefined]);
  });

  it('is never in a message, even when the server echoes it', async () => {
    const server = await startRawServer((socket) =>
      socket.write(http(403, JSON_TYPE, '{"error":"bad header Bearer secret-1"}')),
    );
    const answer = await connect(server.origin, { key: 'secret-1' }).send(ask);
    expect(answer).toMatchObject({ kind: 'refused', reason: 'forbidden' });
    expect(JSON.stringify(answer)).not.toContain('secret-1');
  });

  it('is not sent to another origin by a crafted path', async () => {
    const other = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
    const server = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
    const upstream = connect(server.origin, { key: 'secret-1' });
    await upstream.send({ path: `//127.0.0.1:${other.port}/x`, absolute: true });
    await expect(upstream.send({ path: `@127.0.0.1:${other.port}/x`, absolute: true })).rejects.toThrow(/starts with/);
    expect(other.heard).toEqual([]);
    expect(server.heard).toHaveLength(1);
  });
});

describe('a redirect', () => {
  it('inside the origin is reported, not followed', async () => {
    const server = await startRawServer((socket) =>
      socket.write(http(301, { Location: '/v1/coins/x/ohlcv/historical?limit=2', 'Content-Type': 'text/html' }, '<a>')),
    );
    const upstream = connect(server.origin, { key: 'secret-1' });
    const answer = await upstream.send({ path: '/coins/x/ohlcv/historical/', query: { limit: '2' } });
    expect(answer).toMatchObject({ kind: 'moved', path: '/v1/coins/x/ohlcv/historical?limit=2' });
    expect(server.heard).toHaveLength(1);
    if (answer.kind === 'moved') await upstream.send({ path: answer.path, absolute: true });
    expect(server.heard[1]?.line).toBe('GET /v1/coins/x/ohlcv/historical?limit=2 HTTP/1.1');
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`${status} to another host is not followed; the message names the host, which gets neither key nor request`, async () => {
      const other = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
      const server = await startRawServer((socket) => socket.write(http(status, { Location: `${other.origin}/v1/x` })));
      const answer = await connect(server.origin, { key: 'secret-1' }).send(ask);
      expect(answer).toMatchObject({ kind: 'malformed', astray: true });
      expect(answer.kind === 'malformed' && answer.message).toContain(`127.0.0.1:${other.port}`);
      expect(other.heard).toEqual([]);
      expect(server.heard).toHaveLength(1);
    });
  }

  it('to itself, to an empty or to an invalid address is malformed', async () => {
    const locations = ['/v1/coins/btc-bitcoin/ohlcv/historical', '', 'http://[', 'javascript:alert(1)'];
    const server = await startRawServer((socket, _, n) => socket.write(http(302, { Location: locations[n - 1]! })));
    const upstream = connect(server.origin);
    for (const _ of locations) expect((await upstream.send(ask)).kind).toBe('malformed');
  });
});

describe('a connection that fails is `unavailable`, with a plain sentence and at most one request', () => {
  const failures: [string, (socket: net.Socket) => void, RegExp, UpstreamOptions['timeouts']?][] = [
    ['is reset before a byte', (socket) => socket.resetAndDestroy(), /closed the connection/],
    ['is closed before a byte', (socket) => socket.end(), /closed the connection/],
    [
      'breaks off in the headers',
      (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Ty'),
      /closed the connection/,
    ],
    [
      'is reset in the body',
      (socket) => {
        socket.write(http(200, { ...JSON_TYPE, 'Content-Length': '1000' }, '[{"open":1'), () =>
          socket.resetAndDestroy(),
        );
      },
      /closed the connection/,
    ],
    [
      'ends before the length it promised',
      (socket) => void socket.end(http(200, { ...JSON_TYPE, 'Content-Length': '1000' }, '[]')),
      /closed the connection/,
    ],
    [
      'ends inside a chunked body',
      (socket) => void socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2,\r\n'),
      /closed the connection/,
    ],
    ['never answers', () => undefined, /did not answer in time/, { headersMs: 300 }],
    [
      'falls silent in the body',
      (socket) => void socket.write(http(200, { ...JSON_TYPE, 'Content-Length': '1000' }, '[')),
      /stopped sending/,
      { bodyMs: 400 },
    ],
    [
      'drips a byte at a time without end',
      (socket) => {
        socket.write(http(200, { ...JSON_TYPE, 'Content-Length': '100000' }));
        const drip = setInterval(() => socket.write('1'), 20);
        socket.on('close', () => clearInterval(drip));
      },
      /stopped sending/,
      { bodyMs: 400 },
    ],
  ];
  // Only the tests that wait for a timeout have a short one: a busy machine is slow, too.
  for (const [what, misbehave, sentence, timeouts = {}] of failures) {
    it(`when it ${what}`, async () => {
      const server = await startRawServer((socket) => misbehave(socket));
      const answer = await connect(server.origin, { timeouts }).send(ask);
      expect(answer).toMatchObject({ kind: 'unavailable', retryAfterMs: null });
      const message = answer.kind === 'unavailable' ? answer.message : '';
      expect(message).toMatch(sentence);
      expect(message).not.toMatch(/\n|UND_ERR|Error:/);
      expect(answer.exchange.bodySha256).toBeNull();
      expect(server.heard).toHaveLength(1);
    });
  }

  it('when nothing listens, the name is unknown, or TLS meets plain text', async () => {
    const server = await startRawServer((socket) => socket.end());
    const tls = await connect(`https://127.0.0.1:${server.port}`).send(ask);
    await server.stop();
    const refused = await connect(server.origin).send(ask);
    expect(refused).toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/nothing listens there/) });
    expect(refused.exchange).toMatchObject({ status: null, noContact: 'refused' });
    expect(tls).toMatchObject({ kind: 'unavailable' });
    const unknown = await connect('http://no-such-name.invalid').send(ask);
    expect(unknown).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('no-such-name.invalid') });
    expect(unknown.exchange.noContact).toBe('unknown host');
  });

  it('when TLS meets a server without TLS, plain HTTP meets one with TLS, or the certificate has an unknown signer', async () => {
    const web = createHttpServer((_, response) => response.end('[]')).listen(0, '127.0.0.1');
    const secure = createHttpsServer(SELF_SIGNED, (_, response) => response.end('[]')).listen(0, '127.0.0.1');
    await Promise.all([once(web, 'listening'), once(secure, 'listening')]);
    onTestFinished(() => void [web, secure].map((server) => server.close()));
    const [plainPort, tlsPort] = [web, secure].map((server) => (server.address() as net.AddressInfo).port);
    const noTls = await connect(`https://127.0.0.1:${plainPort}`).send(ask);
    expect(noTls).toMatchObject({ kind: 'unavailable', exchange: { noContact: 'no TLS', status: null } });
    const untrusted = await connect(`https://127.0.0.1:${tlsPort}`).send(ask);
    expect(untrusted).toMatchObject({ kind: 'unavailable', exchange: { noContact: 'untrusted', status: null } });
    // Such a server closes the connection without a message.
    const plain = await connect(`http://127.0.0.1:${tlsPort}`).send(ask);
    expect(plain).toMatchObject({ kind: 'unavailable', exchange: { status: null } });
  });

  it('when the server closes a kept connection under the next request, which fails and is sent once', async () => {
    const used = new Set<net.Socket>();
    const server = await startRawServer((socket) => {
      if (used.has(socket)) return socket.resetAndDestroy();
      used.add(socket);
      socket.write(http(200, { ...JSON_TYPE, 'Keep-Alive': 'timeout=100' }, '[]'));
    });
    const upstream = connect(server.origin);
    const kinds: string[] = [];
    for (let i = 0; i < 12; i++) kinds.push((await upstream.send(ask)).kind);
    expect(server.heard).toHaveLength(12);
    expect(kinds.filter((kind) => kind === 'unavailable').length).toBe(12 - used.size);
    expect(kinds).toContain('unavailable');
    expect(kinds.filter((kind) => kind === 'answered').length).toBe(used.size);
  });

  it('when a 421 asks for another connection: the caller decides', async () => {
    const server = await startRawServer((socket) => socket.write(http(421, JSON_TYPE, '{"error":"misdirected"}')));
    expect(await connect(server.origin).send(ask)).toMatchObject({ kind: 'refused', reason: 'bad request' });
    expect(server.heard).toHaveLength(1);
  });
});

describe('a body that is too large', () => {
  it('is not read beyond the limit', async () => {
    const server = await startRawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[');
      const pour = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(16_384, '1')));
      };
      socket.on('drain', pour);
      pour();
    });
    const answer = await connect(server.origin, { maxBytes: 1_000_000, timeouts: { bodyMs: 10_000 } }).send(ask);
    expect(answer).toMatchObject({ kind: 'malformed' });
    expect(answer.exchange.bytes).toBeLessThan(1_200_000);
    expect(server.heard).toHaveLength(1);
  });

  it('is not unpacked beyond the limit: 200 MB in 200 kB', async () => {
    const bomb = gzipSync(Buffer.alloc(200_000_000));
    expect(bomb.length).toBeLessThan(300_000);
    const server = await startRawServer((socket) =>
      socket.write(http(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, bomb)),
    );
    const before = process.memoryUsage().rss;
    const answer = await connect(server.origin, { maxBytes: 4_000_000, timeouts: { bodyMs: 10_000 } }).send(ask);
    expect(answer).toMatchObject({ kind: 'malformed', message: expect.stringMatching(/more than/) });
    expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000);
  });

  it('does not hide what the status says', async () => {
    const server = await startRawServer((socket) => socket.write(http(502, JSON_TYPE, Buffer.alloc(100_000, '<'))));
    const answer = await connect(server.origin, { maxBytes: 1000 }).send(ask);
    expect(answer).toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/502$/) });
  });

  it('or garbled, is malformed', async () => {
    const wrong = [
      http(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, gzipSync('[1,2,3]').subarray(0, 15)),
      http(200, { ...JSON_TYPE, 'Content-Encoding': 'br' }, 'xx'),
      Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'),
    ];
    const server = await startRawServer((socket, _, n) => socket.write(wrong[n - 1]!));
    const upstream = connect(server.origin);
    for (const _ of wrong) expect(await upstream.send(ask)).toMatchObject({ kind: 'malformed' });
  });
});

describe('the caller', () => {
  it('may abort: the promise rejects with the reason and the connection is closed', async () => {
    let closed: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const stop = new AbortController();
    const server = await startRawServer((socket) => {
      socket.on('close', closed);
      stop.abort(new Error('enough'));
    });
    const asked = connect(server.origin).send({ ...ask, signal: stop.signal });
    await expect(asked).rejects.toThrow('enough');
    await gone;
    await expect(connect(server.origin).send({ ...ask, signal: stop.signal })).rejects.toThrow('enough');
    expect(server.heard).toHaveLength(1);
  });

  it('may abort before there is a connection: then nothing is sent', async () => {
    const server = await startRawServer((socket) => socket.write(http(200, JSON_TYPE, '[]')));
    const upstream = connect(server.origin);
    const stop = new AbortController();
    const asked = upstream.send({ ...ask, signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    expect((await upstream.send(ask)).kind).toBe('answered');
    expect(server.heard).toHaveLength(1);
  });

  it('gets an error at once for an unusable base URL or key', () => {
    const make = (baseUrl: string, key: string | null) => () => createUpstream({ baseUrl, key, clock: systemClock });
    expect(make('api.example/v1', null)).toThrow(/"api.example\/v1" is not an http/);
    expect(make('https://user:pw@api.example/v1', null)).toThrow(/credentials/);
    expect(make('https://api.example/v1', 'se cret\n')).toThrow(/visible ASCII/);
    expect(make('https://api.example/v1', 'se cret\n')).not.toThrow(/se cret/);
  });
});

it('concurrent calls send one request each', async () => {
  const server = await startRawServer((socket, _, n) => {
    if (n % 3 === 0) socket.resetAndDestroy();
    else socket.write(http(200, JSON_TYPE, '[]'));
  });
  const upstream = connect(server.origin);
  const answers = await Promise.all(Array.from({ length: 60 }, () => upstream.send(ask)));
  expect(server.heard).toHaveLength(60);
  expect(answers.filter((a) => a.kind === 'unavailable')).toHaveLength(20);
});
