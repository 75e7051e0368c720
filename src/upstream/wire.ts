/** Puts one HTTP request on the wire and hands back the head of its answer: over real sockets, or through an injected `fetch`. */
import { Agent } from 'undici';

export type WireRequest = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; without it, it is a GET. */
  readonly post?: string | undefined;
  readonly signal: AbortSignal;
};

export type WireAnswer = {
  readonly status: number;
  /** Case-insensitive; null when absent; several of one name joined by a comma. */
  header(name: string): string | null;
  readonly chunks: AsyncIterable<Uint8Array>;
};

export type Wire = {
  send(request: WireRequest): Promise<WireAnswer>;
  close(): Promise<void>;
};

/** How long the three stages of an exchange may take, in milliseconds. */
export type Timeouts = {
  readonly connectMs: number;
  /** From the request written to the answer's headers. */
  readonly headersMs: number;
  /** The whole body, however it drips. */
  readonly bodyMs: number;
};

/** What stands where the network would: a simulator, or any server that is a function. */
export type FetchFunction = (request: Request) => Promise<Response>;

/**
 * Keep-alive connections of an own agent. The dispatcher's `request` and not `fetch`: a fetch asks a second time by itself
 * when the answer is 421, and every request counts.
 */
export function createSocketWire(timeouts: Timeouts): Wire {
  const agent = new Agent({
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
  });
  return {
    async send({ url, headers, post, signal }) {
      const answer = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: post === undefined ? 'GET' : 'POST',
        headers,
        body: post ?? null,
        signal,
      });
      return {
        status: answer.statusCode,
        header: (name) => {
          const value = answer.headers[name.toLowerCase()];
          return Array.isArray(value) ? value.join(', ') : (value ?? null);
        },
        chunks: answer.body,
      };
    },
    close: () => agent.close(),
  };
}

/** `fetch` gets one `Request` per question, with redirects left to us. */
export function createFetchWire(fetch: FetchFunction): Wire {
  return {
    async send({ url, headers, post, signal }) {
      const method = post === undefined ? {} : { method: 'POST', body: post };
      const answer = await fetch(new Request(url, { ...method, headers, signal, redirect: 'manual' }));
      return { status: answer.status, header: (name) => answer.headers.get(name), chunks: answer.body ?? nothing() };
    },
    close: () => Promise.resolve(),
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // An answer without a body has no chunks.
}
