/** Everything that speaks HTTP is a function of a request, so that in a test a service stands where `fetch` would. */

/** Who is at the other end of the connection; unknown when the handler is called in place of `fetch`. */
export type Peer = {
  readonly address: string;
  /** What a GET asks for, as it was written: path and query. Not there for anything else. */
  readonly target?: string | undefined;
  /** The request's headers as the socket's reader has them, in lower case: cheaper than those of a `Request`. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
};

export type Handler = {
  (request: Request, peer?: Peer): Promise<Response>;
  /**
   * Tried first by who listens on a port: the answer, if this was asked before and is known to be what the handler would answer now.
   * Null at once, or in the end: the handler is to be asked, with the same peer.
   */
  readonly again?: (peer: Peer) => Promise<Response | null> | null;
};

/** What a handler rejects with, as `fetch` does, when the connection is cut; whoever listens for it cuts a real one. */
export function connectionReset(): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) });
}

export function isConnectionReset(error: unknown): boolean {
  return error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === 'ECONNRESET';
}
