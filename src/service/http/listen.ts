/** Serves a handler on a port, with limits against clients that are slow, many or faulty. */
import { createServer, type IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import type { AddressInfo, BlockList, Socket } from 'node:net';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { systemClock } from '../../clock.ts';
import { type Handler, isConnectionReset, type Peer, type Reply } from '../../contract/interface/handler.ts';
import { callerAddress, isTrusted } from '../../core/caller/address.ts';

const gzip = promisify(gzipCallback);
/** Below this, compressing costs more than it saves. */
const MIN_GZIP_BYTES = 1_024;

export type ListenOptions = {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Compresses answers for clients that accept it. Default true. */
  readonly gzip?: boolean;
  /** Adds a `Date` to answers of the handler without one, as Node.js does. Default true; false for a simulator that leaves it out on purpose. */
  readonly addDate?: boolean;
  /** Called with unexpected errors of the handler; the client only sees a 500. Without it, such an error ends the process. */
  readonly onError?: (error: unknown, url: string) => void;
  /** Default: `CONNECTION_LIMITS`. */
  readonly limits?: Partial<ConnectionLimits>;
  /** `maxPerAddress` does not apply to these addresses: each stands for many callers. */
  readonly trustedProxies?: BlockList | null;
};

type ConnectionLimits = {
  /** Time until the headers of a request have arrived. */
  readonly headersMs: number;
  /** Time until the whole request has arrived. */
  readonly requestMs: number;
  /** Time without a byte from either side, during a request or between two; null: unlimited, for answers that are delayed on purpose. */
  readonly idleMs: number | null;
  /** Time between two requests. */
  readonly keepAliveMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** Connections from one address; null: unlimited. */
  readonly maxPerAddress: number | null;
};

/**
 * The limits keep a slow client from holding a connection for long, and one address from locking the others out. The defaults of Node.js are one
 * minute for the headers and five for the request; the requests of this interface are short.
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
  /** Answers open requests, and those of the next tenth of a second, within `graceMs`; then it cuts their connections. 0 (default): cuts them at once. */
  close(graceMs?: number): Promise<void>;
};

/** Resolves when the port is open. @throws an error with a message for the operator when the port cannot be opened */
export async function listen(handler: Handler, options: ListenOptions): Promise<Listening> {
  const compress = options.gzip ?? true;
  const onError = options.onError ?? throwOutside;
  const listener = getRequestListener(
    async (request, env) => {
      const { incoming, outgoing } = env as { incoming: IncomingMessage; outgoing: ServerResponse };
      try {
        // A HEAD is answered like its GET, with the length of that body. Node.js omits the body.
        const { url, headers, signal } = request;
        const question = request.method === 'HEAD' ? new Request(url, { headers, signal }) : request;
        const response = await handler(question, peers.get(incoming) ?? peerOf(incoming));
        await sendResponse(response, outgoing, compress);
      } catch (error) {
        if (isConnectionReset(error)) cutConnection(outgoing);
        else if (!request.signal.aborted) {
          onError(error, request.url);
          return new Response(null, { status: 500 });
        }
      }
      return RESPONSE_ALREADY_SENT;
    },
    // HTTP/1.0 needs no `Host`, and health checks of load balancers send none. The name is only for the URL: the headers have no `host`.
    { overrideGlobalObjects: false, hostname: 'localhost' },
  );
  /** The peers of requests for which the cache had no reply. */
  const peers = new WeakMap<IncomingMessage, Peer>();
  let isClosing = false;
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    outgoing.sendDate = options.addDate ?? true;
    if (isClosing) outgoing.shouldKeepAlive = false;
    if (incoming.httpVersionMajor < 1) return void sendReply(OLD_VERSION_REFUSED, outgoing, false);
    if (hasDotSegment(incoming.url ?? '')) return void sendReply(DOT_SEGMENT_REFUSED, outgoing, false);
    const peer = handler.fromCache !== undefined && isPlainGet(incoming) ? peerOf(incoming) : null;
    const cached = peer === null ? null : handler.fromCache!(peer);
    if (cached === null) return void listener(incoming, outgoing);
    const sendCached = async () => {
      try {
        const reply = await cached;
        if (reply !== null) return await sendReply(reply, outgoing, compress);
      } catch (error) {
        onError(error, incoming.url ?? '');
        if (outgoing.headersSent) return outgoing.destroy();
        return outgoing.writeHead(500).end();
      }
      peers.set(incoming, peer!);
      return listener(incoming, outgoing);
    };
    void sendCached();
  };
  const limits = { ...CONNECTION_LIMITS, ...options.limits };
  const server = createServer(settingsOf(limits), onRequest);
  server.maxConnections = limits.maxConnections;
  if (limits.maxPerAddress !== null)
    server.on('connection', perAddress(limits.maxPerAddress, options.trustedProxies ?? null));
  if (limits.idleMs !== null) server.setTimeout(limits.idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      // A command would take a name that does not exist for that of the database's host.
      const cause = isUnknownName(error) ? {} : { cause: error };
      reject(new Error(explain(error, options), cause));
    });
    server.listen(options.port, options.host, resolve);
  });
  const { address, family, port } = server.address() as AddressInfo;
  const host =
    family === 'IPv6' ? `[${address === '::' ? '::1' : address}]` : address === '0.0.0.0' ? '127.0.0.1' : address;
  return {
    url: `http://${host}:${port}`,
    close: async (graceMs = 0) => {
      isClosing = true;
      server.keepAliveTimeout = ON_THE_WAY_MS;
      if (graceMs > 0) await systemClock.sleep(ON_THE_WAY_MS);
      await new Promise<void>((resolve, reject) => {
        const late = new AbortController();
        server.close((error) => {
          late.abort();
          return error ? reject(error) : resolve();
        });
        if (graceMs === 0) return server.closeAllConnections();
        void systemClock.sleep(graceMs, late.signal).then(server.closeAllConnections.bind(server), () => undefined);
      });
    },
  };
}

const TOO_MANY = '{"error":"too many connections from this address"}';
const TOO_MANY_RESPONSE = `HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: ${TOO_MANY.length}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n${TOO_MANY}`;

/** Refuses a further connection from an address that has `most` already, before it reads anything from it. */
function perAddress(most: number, trusted: BlockList | null): (socket: Socket) => void {
  const open = new Map<string, number>();
  return (socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || isTrusted(remoteAddress, trusted)) return;
    const name = callerAddress(remoteAddress);
    const count = open.get(name) ?? 0;
    if (count >= most) {
      socket.end(TOO_MANY_RESPONSE);
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

/**
 * Whether the path has a segment `.` or `..`. A URL parser resolves it to another path. A reverse proxy that checks the path as it was sent would
 * let a caller through to a path that is closed to callers.
 */
function hasDotSegment(target: string): boolean {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  // A URL parser ignores tabs and line ends, and reads a backslash as a slash.
  return /(^|[/\\])(\.|%2e){1,2}([/\\]|$)/i.test(path.replaceAll(/[\t\r\n]/g, ''));
}

function refusal(error: string): Reply {
  const headers = ['Content-Type', 'application/json', 'Cache-Control', 'no-store'];
  return { status: 400, headers, body: JSON.stringify({ error }) };
}

const DOT_SEGMENT_REFUSED = refusal('the path must not have a segment . or .. in it, also not as %2e');
/** A request line without a version is HTTP/0.9, which has no headers. */
const OLD_VERSION_REFUSED = refusal('the request must be of HTTP/1.0 or later');

/** Whether this is a GET or a HEAD without a body. A HEAD gets the length that the GET would have now. */
function isPlainGet({ method, headers }: IncomingMessage): boolean {
  return (
    (method === 'GET' || method === 'HEAD') &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}

function peerOf({ url, socket, headers }: IncomingMessage): Peer {
  return { address: socket.remoteAddress ?? 'unknown', target: url, headers };
}

/** Node.js checks the time limits this often, or more often. */
const CHECK_INTERVAL_MS = 1_000;
/** Before a closing server closes an idle connection, requests arrive that were sent already. Each is answered, and ends its connection. */
const ON_THE_WAY_MS = 100;

function settingsOf({ headersMs, requestMs, keepAliveMs, maxHeaderBytes }: ConnectionLimits): ServerOptions {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    maxHeaderSize: maxHeaderBytes,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, headersMs),
  };
}

async function sendResponse(response: Response, outgoing: ServerResponse, compress: boolean): Promise<void> {
  const headers = [...response.headers].flat();
  if (response.headers.get('content-type')?.startsWith(EVENTS)) return sendEvents(response, headers, outgoing);
  const body = response.body === null ? null : new Uint8Array(await response.arrayBuffer());
  return sendReply({ status: response.status, headers, body }, outgoing, compress);
}

const EVENTS = 'text/event-stream';

/** Sends events as they come, until the client disconnects or the stream ends. */
async function sendEvents(
  { status, body }: Response,
  headers: readonly string[],
  outgoing: ServerResponse,
): Promise<void> {
  const reader = body!.getReader();
  const closed = new Promise<void>((resolve) => outgoing.once('close', resolve)).then(() => reader.cancel());
  if (outgoing.destroyed) return reader.cancel();
  outgoing.writeHead(status, headers as string[]);
  if (outgoing.req.method === 'HEAD') {
    outgoing.end();
    return reader.cancel();
  }
  outgoing.flushHeaders();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return void outgoing.end();
    // The producer of events does not wait for a slow client. It knows how many events are unread, because this loop stops reading meanwhile.
    if (!outgoing.write(value)) await Promise.race([new Promise((resolve) => outgoing.once('drain', resolve)), closed]);
  }
}

async function sendReply(reply: Reply, outgoing: ServerResponse, compress: boolean): Promise<void> {
  const { status, headers, body } = reply;
  if (body === null) {
    outgoing.writeHead(status, headers as string[]).end();
  } else if (compress && body.length >= MIN_GZIP_BYTES && acceptsGzip(outgoing.req)) {
    const packed = await (reply.gzip?.() ?? gzip(body, { level: 1 }));
    const added = ['Content-Encoding', 'gzip', 'Content-Length', String(packed.byteLength)];
    outgoing.writeHead(status, [...headers, ...added]).end(packed);
  } else {
    outgoing.writeHead(status, [...headers, 'Content-Length', String(body.length)]).end(body, 'latin1');
  }
}

/** Ends the process: an error that no code handles must not go unnoticed. */
function throwOutside(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

function acceptsGzip(incoming: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(incoming.headers['accept-encoding'] ?? ''));
}

/** Cuts the connection in the middle of a body, which is the hardest case for a client. */
function cutConnection(outgoing: ServerResponse): void {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': 65_536 });
  outgoing.write('[{"time_open":"', () => outgoing.socket?.resetAndDestroy());
}

function isUnknownName({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN';
}

function explain(error: NodeJS.ErrnoException, { host, port }: ListenOptions): string {
  const at = `cannot listen on ${host}:${port}`;
  if (error.code === 'EADDRINUSE') return `${at}: the port is taken; choose another one, or stop what uses it`;
  if (error.code === 'EACCES') return `${at}: not allowed; choose a port from 1024 up`;
  if (error.code === 'EADDRNOTAVAIL' || isUnknownName(error)) return `${at}: this machine has no such address`;
  return `${at}: ${error.message}`;
}
