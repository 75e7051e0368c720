import { EventEmitter, once } from 'node:events';
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { connectionReset, type Handler } from '../../src/contract/handler.ts';
import { type Listening, listen } from '../../src/service/listen.ts';

const open: Listening[] = [];
const errors: unknown[] = [];
const onError = (error: unknown) => {
  errors.push(error);
};
afterEach(async () => {
  errors.length = 0;
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(handler: Handler, options: { gzip?: boolean } = {}): Promise<string> {
  const server = await listen(handler, { host: '127.0.0.1', port: 0, onError, ...options });
  open.push(server);
  return server.url;
}

const long = JSON.stringify(Array.from({ length: 400 }, (_, i) => ({ i })));

/** Below `fetch`, which hides the encoding. */
async function raw(url: string, headers: Record<string, string>, method = 'GET') {
  const message = request(url, { headers, method }).end();
  const [answer] = await once(message, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return { headers: answer.headers as Record<string, string>, body: Buffer.concat(chunks) };
}

describe('a handler on a port', () => {
  it('is given the request and the address of the client, and its answer arrives as it is', async () => {
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

  it('compresses for who accepts it, and only then', async () => {
    const url = await serve(async () => new Response(long));
    const packed = await raw(url, { 'accept-encoding': 'gzip, deflate' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(packed.body.byteLength).toBeLessThan(long.length / 2);
    expect(gunzipSync(packed.body).toString()).toBe(long);
    for (const accept of ['identity', 'gzip;q=0', 'deflate']) {
      const plain = await raw(url, { 'accept-encoding': accept });
      expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual([undefined, long]);
    }
    const never = await serve(async () => new Response(long), { gzip: false });
    expect((await raw(never, { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined();
  });

  it('answers HEAD without a body', async () => {
    const url = await serve(async () => new Response(null, { headers: { 'Content-Type': 'text/plain' } }));
    const { headers, body } = await raw(url, {}, 'HEAD');
    expect([headers['content-type'], body.byteLength]).toEqual(['text/plain', 0]);
  });

  it('cuts the connection in the middle of the body when the handler says so', async () => {
    const url = await serve(async () => {
      throw connectionReset();
    });
    const read = fetch(url).then((answer) => answer.text());
    await expect(read).rejects.toThrow();
  });

  it('keeps a connection open while its handler waits, and tells it when the client leaves', async () => {
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

  it('answers 500 when the handler fails otherwise, and lives on', async () => {
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

  it('says plainly that the port is taken', async () => {
    const url = await serve(async () => new Response('x'));
    const port = Number(new URL(url).port);
    await expect(listen(async () => new Response('y'), { host: '127.0.0.1', port, onError })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: the port is taken; choose another one, or stop what uses it`,
    );
  });

  it('says plainly that the address is not one of this machine', async () => {
    await expect(listen(async () => new Response('y'), { host: '192.0.2.1', port: 0, onError })).rejects.toThrow(
      'this machine has no such address',
    );
  });
});
