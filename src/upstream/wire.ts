/** Puts one HTTP request on the wire and hands back the head of its answer: over real sockets, or through an injected `fetch`. */
import { Agent, type Dispatcher } from 'undici';
import { collect, type Packed } from './body.ts';

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
  /** The body as it was sent, all of it or up to the bound. Never rejects; to be asked for once. */
  body(): Promise<Packed>;
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
 * Keep-alive connections of an own agent; a body of more than `maxBytes` ends its connection. The dispatcher itself and not `fetch`: a
 * fetch asks a second time by itself when the answer is 421, and every request counts. Nor its `request`: the stream that it makes of a
 * body, read piece by piece, costs as much as all the rest of an exchange.
 */
export function createSocketWire(timeouts: Timeouts, maxBytes: number): Wire {
  const agent = new Agent({
    connect: { timeout: timeouts.connectMs },
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
  });
  return {
    send: ({ url, headers, post, signal }) =>
      new Promise<WireAnswer>((resolve, reject) => {
        const options = {
          origin: url.origin,
          path: url.pathname + url.search,
          method: post === undefined ? 'GET' : 'POST',
          headers,
          body: post ?? null,
        } as const;
        agent.dispatch(options, new Receiver(signal, maxBytes, resolve, reject));
      }),
    close: () => agent.close(),
  };
}

/** What the agent tells of one exchange; made into its answer when the head is there, and the body of that when its end is. */
class Receiver implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal;
  readonly #maxBytes: number;
  readonly #onHead: (answer: WireAnswer) => void;
  readonly #onFailure: (error: unknown) => void;
  #connection: Dispatcher.DispatchController | null = null;
  #hasHead = false;
  #parts: Buffer[] = [];
  #size = 0;
  #body: Packed | null = null;
  #onBody: ((body: Packed) => void) | null = null;

  constructor(
    signal: AbortSignal,
    maxBytes: number,
    onHead: (answer: WireAnswer) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.#signal = signal;
    this.#maxBytes = maxBytes;
    this.#onHead = onHead;
    this.#onFailure = onFailure;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = () => {
    const { reason } = this.#signal;
    if (!this.#hasHead) this.#onFailure(reason);
    this.#connection?.abort(reason);
  };

  onRequestStart(connection: Dispatcher.DispatchController): void {
    this.#connection = connection;
    // Meanwhile it waited for a connection.
    if (this.#signal.aborted) connection.abort(this.#signal.reason);
  }

  onResponseStart(
    _connection: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Only that the answer is on its way.
    if (status < 200) return;
    this.#hasHead = true;
    this.#onHead({
      status,
      header: (name) => {
        const value = headers[name.toLowerCase()];
        return Array.isArray(value) ? value.join(', ') : (value ?? null);
      },
      body: () =>
        new Promise((resolve) => {
          if (this.#body !== null) resolve(this.#body);
          else this.#onBody = resolve;
        }),
    });
  }

  onResponseData(connection: Dispatcher.DispatchController, part: Buffer): void {
    this.#size += part.byteLength;
    if (this.#size <= this.#maxBytes) {
      this.#parts.push(part);
      return;
    }
    this.#end({ kind: 'too large', bytes: this.#size });
    connection.abort(TOO_LARGE);
  }

  onResponseEnd(): void {
    const parts = this.#parts;
    // Joined, they would be in memory twice for as long as the answer is.
    this.#parts = [];
    this.#end({ kind: 'packed', bytes: parts.length === 1 ? parts[0]! : Buffer.concat(parts, this.#size) });
  }

  onResponseError(_connection: Dispatcher.DispatchController, error: Error): void {
    if (this.#hasHead) this.#end({ kind: 'cut', bytes: this.#size, error });
    else {
      this.#signal.removeEventListener('abort', this.#onAbort);
      this.#onFailure(error);
    }
  }

  /** The first end is the one that counts: ending a connection is told as an error of it. */
  #end(body: Packed): void {
    if (this.#body !== null) return;
    this.#body = body;
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#onBody?.(body);
  }
}

const TOO_LARGE = new Error('the body is larger than it may be');

/** `fetch` gets one `Request` per question, with redirects left to us. */
export function createFetchWire(fetch: FetchFunction, maxBytes: number): Wire {
  return {
    async send({ url, headers, post, signal }) {
      const method = post === undefined ? {} : { method: 'POST', body: post };
      const answer = await fetch(new Request(url, { ...method, headers, signal, redirect: 'manual' }));
      const chunks = answer.body ?? nothing();
      return {
        status: answer.status,
        header: (name) => answer.headers.get(name),
        body: () => collect(chunks, maxBytes),
      };
    },
    close: () => Promise.resolve(),
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // An answer without a body has no chunks.
}
