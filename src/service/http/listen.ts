/** Puts a handler on a port. */
import { createServer, type IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import type { AddressInfo, BlockList, Socket } from 'node:net';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { systemClock } from '../../clock.ts';
import { type PlainParts, partsOf } from '../../contract/answer/plain-answer.ts';
import { type Handler, isConnectionReset, type Peer } from '../../contract/interface/handler.ts';
import { callerAddress, isTrusted } from '../../core/address.ts';

const gzip = promisify(gzipCallback);
/** Below this, compressing costs more than it saves. */
const MIN_GZIP_BYTES = 1_024;
/** From here on, to write a text out as bytes costs more than to send them apart from the headers. */
const MIN_ENCODED = 8_192;

export type ListenOptions = {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Compresses answers for clients that accept it. Default true. */
  readonly gzip?: boolean;
  /** Told when a handler fails in a way it should not; the client only sees a 500. Without it, that ends the process. */
  readonly onError?: (error: unknown, url: string) => void;
  /** Against clients that are slow, many or bad; what is not given is as in `CONNECTION_LIMITS`. */
  readonly limits?: Partial<ConnectionLimits>;
  /** Behind these addresses are many callers: they may have any number of connections. */
  readonly trustedProxies?: BlockList | null;
};

export type ConnectionLimits = {
  /** Until the headers of a request have arrived. */
  readonly headersMs: number;
  /** Until all of a request has arrived. */
  readonly requestMs: number;
  /** Without a word from either side, in a request or between two; null: for ever, because an answer may be held back on purpose. */
  readonly idleMs: number | null;
  /** Between two requests. */
  readonly keepAliveMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** Of one address; null: as many as of all. */
  readonly maxPerAddress: number | null;
};

/**
 * A client that is slow does not keep a connection; one address does not keep the others out. Node.js by itself would wait a
 * minute for headers and five for the rest of a request. Requests are short: what takes longer than this is not coming.
 */
export const CONNECTION_LIMITS: ConnectionLimits = {
  headersMs: 10_000,
  requestMs: 20_000,
  idleMs: null,
  keepAliveMs: 15_000,
  maxHeaderBytes: 16_384,
  maxConnections: 2_000,
  maxPerAddress: null,
};

export type Listening = {
  /** Without a path: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Stops taking requests; those under way have so long to end (default: no time), then their connections are cut. */
  close(graceMs?: number): Promise<void>;
};

/** Resolves when the port is open; rejects with a message for the operator when it cannot be had. */
export async function listen(handler: Handler, options: ListenOptions): Promise<Listening> {
  const compress = options.gzip ?? true;
  const onError = options.onError ?? throwOutside;
  const listener = getRequestListener(
    async (request, env) => {
      const { incoming, outgoing } = env as { incoming: IncomingMessage; outgoing: ServerResponse };
      try {
        const answer = await handler(request, peers.get(incoming) ?? peerOf(incoming));
        await send(answer, outgoing, compress);
      } catch (error) {
        if (isConnectionReset(error)) cutConnection(outgoing);
        else if (!request.signal.aborted) {
          onError(error, request.url);
          return new Response(null, { status: 500 });
        }
      }
      return RESPONSE_ALREADY_SENT;
    },
    { overrideGlobalObjects: false },
  );
  /** Of those that turned out to be asked for anew. */
  const peers = new WeakMap<IncomingMessage, Peer>();
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const peer = handler.again !== undefined && isPlainGet(incoming) ? peerOf(incoming) : null;
    const again = peer === null ? null : handler.again!(peer);
    if (again === null) return void listener(incoming, outgoing);
    const give = async () => {
      try {
        const answer = await again;
        if (answer !== null) return await send(answer, outgoing, compress);
      } catch (error) {
        onError(error, incoming.url ?? '');
        if (outgoing.headersSent) return outgoing.destroy();
        return outgoing.writeHead(500).end();
      }
      peers.set(incoming, peer!);
      return listener(incoming, outgoing);
    };
    void give();
  };
  const limits = { ...CONNECTION_LIMITS, ...options.limits };
  const server = createServer(settingsOf(limits), onRequest);
  server.maxConnections = limits.maxConnections;
  if (limits.maxPerAddress !== null)
    server.on('connection', perAddress(limits.maxPerAddress, options.trustedProxies ?? null));
  if (limits.idleMs !== null) server.setTimeout(limits.idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new Error(explain(error, options), { cause: error })));
    server.listen(options.port, options.host, resolve);
  });
  const { address, family, port } = server.address() as AddressInfo;
  const host =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address;
  return {
    url: `http://${host}:${port}`,
    close: (graceMs = 0) =>
      new Promise((resolve, reject) => {
        const late = new AbortController();
        server.close((error) => {
          late.abort();
          if (error) reject(error);
          else resolve();
        });
        if (graceMs === 0) return server.closeAllConnections();
        server.closeIdleConnections();
        systemClock.sleep(graceMs, late.signal).then(
          () => server.closeAllConnections(),
          () => undefined,
        );
      }),
  };
}

const TOO_MANY = '{"error":"too many connections from this address"}';
const TURNED_AWAY = `HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: ${TOO_MANY.length}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n${TOO_MANY}`;

/** Turns away those of an address that has so many already, before anything is read of them. */
function perAddress(most: number, trusted: BlockList | null): (socket: Socket) => void {
  const open = new Map<string, number>();
  return (socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || isTrusted(remoteAddress, trusted)) return;
    const name = callerAddress(remoteAddress);
    const count = open.get(name) ?? 0;
    if (count >= most) {
      socket.end(TURNED_AWAY);
      socket.destroySoon();
      return;
    }
    open.set(name, count + 1);
    socket.once('close', () => {
      const left = open.get(name)! - 1;
      if (left === 0) open.delete(name);
      else open.set(name, left);
    });
  };
}

/** Whatever is odd about a request is for those who read all of it. */
function isPlainGet({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
}

function peerOf({ method, url, socket, headers }: IncomingMessage): Peer {
  return { address: socket.remoteAddress ?? 'unknown', target: method === 'GET' ? url : undefined, headers };
}

/** How often it is looked whose time is up, at least. */
const LOOK_MS = 1_000;

function settingsOf({ headersMs, requestMs, keepAliveMs, maxHeaderBytes }: ConnectionLimits): ServerOptions {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    maxHeaderSize: maxHeaderBytes,
    connectionsCheckingInterval: Math.min(LOOK_MS, headersMs),
  };
}

async function send(answer: Response, outgoing: ServerResponse, compress: boolean): Promise<void> {
  const parts = partsOf(answer);
  if (parts) return sendParts(parts, outgoing, compress);
  const headers: string[] = [];
  for (const [name, value] of answer.headers) headers.push(name, value);
  return sendBody(answer.status, headers, new Uint8Array(await answer.arrayBuffer()), outgoing, compress);
}

/** By far the most common case: nothing has to be read back out of a `Response`. */
function sendParts(parts: PlainParts, outgoing: ServerResponse, compress: boolean): void | Promise<void> {
  const { status, headers, body, encoded, packed } = parts;
  if (body === null) {
    outgoing.writeHead(status, headers).end();
  } else if (compress && body.length >= MIN_GZIP_BYTES && acceptsGzip(outgoing.req)) {
    return (packed?.() ?? gzip(body, { level: 1 })).then((bytes) => sendPacked(status, headers, bytes, outgoing));
  } else if (encoded !== undefined && body.length >= MIN_ENCODED) {
    const bytes = encoded();
    headers.push('Content-Length', String(bytes.byteLength));
    outgoing.writeHead(status, headers).end(bytes);
  } else {
    const byteLength = parts.byteLength ?? Buffer.byteLength(body);
    headers.push('Content-Length', String(byteLength));
    // As many bytes as characters: nothing but ASCII, which is written in one piece, unlooked at.
    outgoing.writeHead(status, headers).end(body, byteLength === body.length ? 'latin1' : 'utf8');
  }
}

async function sendBody(
  status: number,
  headers: readonly string[],
  body: Uint8Array,
  outgoing: ServerResponse,
  compress: boolean,
): Promise<void> {
  if (compress && body.byteLength >= MIN_GZIP_BYTES && acceptsGzip(outgoing.req)) {
    return sendPacked(status, headers, await gzip(body, { level: 1 }), outgoing);
  }
  const isEmpty = body.byteLength === 0 && outgoing.req.method === 'HEAD';
  const length = isEmpty ? [] : ['Content-Length', String(body.byteLength)];
  outgoing.writeHead(status, [...headers, ...length]).end(body);
}

function sendPacked(status: number, headers: readonly string[], bytes: Uint8Array, outgoing: ServerResponse): void {
  const added = ['Content-Encoding', 'gzip', 'Content-Length', String(bytes.byteLength)];
  outgoing.writeHead(status, [...headers, ...added]).end(bytes);
}

/** Where nobody catches it: a defect that nobody wants to hear of must not pass in silence. */
function throwOutside(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

function acceptsGzip(incoming: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(incoming.headers['accept-encoding'] ?? ''));
}

/** In the middle of a body, where it hurts most. */
function cutConnection(outgoing: ServerResponse): void {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': 65_536 });
  outgoing.write('[{"time_open":"', () => outgoing.socket?.resetAndDestroy());
}

function explain(error: NodeJS.ErrnoException, { host, port }: ListenOptions): string {
  const at = `cannot listen on ${host}:${port}`;
  if (error.code === 'EADDRINUSE') return `${at}: the port is taken; choose another one, or stop what uses it`;
  if (error.code === 'EACCES') return `${at}: not allowed; choose a port from 1024 up`;
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') return `${at}: this machine has no such address`;
  return `${at}: ${error.message}`;
}
