/** Everything that speaks HTTP is a function of a request, so that in a test a service stands where `fetch` would. */

/** The other end of the connection; unknown when the handler is called in place of `fetch`. */
export type Peer = {
  readonly address: string;
  /** The target of the request as it was sent: path and query, or a whole address. No part of it was decoded or resolved. */
  readonly target?: string | undefined;
  /** The request's headers as Node.js parsed them, with names in lower case: cheaper than those of a `Request`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
};

/** A reply out of a cache, as it is written to the socket. */
export type Reply = {
  readonly status: number;
  /** Names and values in turn, without `Content-Length` and `Content-Encoding`. */
  readonly headers: readonly string[];
  /** A string holds ASCII characters only. Null: no body (304). */
  readonly body: string | Uint8Array | null;
  /** The same body, compressed once for everybody. */
  readonly gzip?: () => Promise<Uint8Array>;
};

export type Handler = {
  (request: Request, peer?: Peer): Promise<Response>;
  /**
   * Tried first for a plain GET that arrives on a port. Null, at once or in the end: no cached reply is valid, so the caller passes the
   * request to the handler, with the same `peer` object.
   */
  readonly fromCache?: (peer: Peer) => Promise<Reply | null> | null;
};

/** A handler rejects with this, as `fetch` does, to cut the connection; `listen` then cuts the real one. */
export function connectionReset(): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });
}

export function isConnectionReset(error: unknown): boolean {
  return error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === 'ECONNRESET';
}
