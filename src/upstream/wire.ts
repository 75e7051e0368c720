/** Sends one HTTP request and returns its response as it arrives: over real sockets, or through an injected `fetch`. */
import { createHttpAgent } from './agent.ts';

type WireRequest = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; without it, the request is a GET. */
  readonly post?: string | undefined;
  readonly signal: AbortSignal;
};

export type WireResponse = {
  readonly status: number;
  /** The header with this name in any case; null when absent. Several headers of one name are joined with commas. */
  header(name: string): string | null;
  /** The body as it was sent; it can be read once. A reader that stops before its end closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
};

type Wire = {
  send(request: WireRequest): Promise<WireResponse>;
  close(): Promise<void>;
};

/** How long the three stages of an exchange may take, in milliseconds. */
export type Timeouts = {
  readonly connectMs: number;
  /** From the end of the request to the response's headers. */
  readonly headersMs: number;
  /** The whole body, however slowly it arrives. */
  readonly bodyMs: number;
};

/** Replaces the network: a simulator, or any server that is a function. */
export type FetchFunction = (request: Request) => Promise<Response>;

/** Sends over keep-alive connections of its own agent, not with `fetch`: that automatically sends a second request after a 421. */
export function createSocketWire(timeouts: Timeouts): Wire {
  const agent = createHttpAgent({
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
  });
  return {
    send: async ({ url, headers, post, signal }) => {
      const response = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: post === undefined ? 'GET' : 'POST',
        headers,
        body: post ?? null,
        signal,
      });
      return {
        status: response.statusCode,
        header: (name) => {
          const value = response.headers[name.toLowerCase()];
          return Array.isArray(value) ? value.join(', ') : (value ?? null);
        },
        body: response.body,
      };
    },
    close: () => agent.close(),
  };
}

/** Calls `fetch` with one `Request` per question. `fetch` must not follow redirects. */
export function createFetchWire(fetch: FetchFunction): Wire {
  return {
    send: async ({ url, headers, post, signal }) => {
      const method = post === undefined ? {} : { method: 'POST', body: post };
      const response = await fetch(new Request(url, { ...method, headers, signal, redirect: 'manual' }));
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        body: response.body ?? new ReadableStream({ start: (body) => body.close() }),
      };
    },
    close: () => Promise.resolve(),
  };
}
