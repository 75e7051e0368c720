/** Every HTTP server here is a function of a request, so that a test can use a service in place of `fetch`. */

/** The other end of the connection; unknown when the handler is called in place of `fetch`. */
export type Peer = {
  readonly address: string;
  /** The target of the request as it was sent: path and query, or a whole URL. No part of it is decoded or resolved. */
  readonly target?: string | undefined;
  /** The request's headers as Node.js parsed them, with names in lower case. Reading them costs less than those of a `Request`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
};

/** A reply from a cache, in the form in which it is written to the socket. */
export type Reply = {
  readonly status: number;
  /** Names and values in turn, without `Content-Length` and `Content-Encoding`. */
  readonly headers: readonly string[];
  /** A string contains only ASCII characters. Null when there is no body (304). */
  readonly body: string | Uint8Array | null;
  /** The same body, compressed once for all callers. */
  readonly gzip?: () => Promise<Uint8Array>;
};

export type Handler = {
  (request: Request, peer?: Peer): Promise<Response>;
  /**
   * The server tries this first for a plain GET on a port. If the result or its promise is null, no cached reply is valid, and the server passes
   * the request to the handler, with the same `peer` object.
   */
  readonly fromCache?: (peer: Peer) => Promise<Reply | null> | null;
};

/** A handler rejects with this, like `fetch` after a reset; `listen` then closes the real connection. */
export function connectionReset(): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });
}

export function isConnectionReset(error: unknown): boolean {
  return error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === 'ECONNRESET';
}
