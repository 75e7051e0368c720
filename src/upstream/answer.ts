/** The possible outcomes of one HTTP request to the upstream. Outcomes are data: nothing here is thrown. */
import type { Instant } from '../clock.ts';
import type { AnswerTime } from './answer-time.ts';

/** Why the request reached no server that could be the upstream: a wrong address or no network. A server that fails was reached. */
export type NoContact = 'refused' | 'unknown host' | 'no network' | 'no TLS' | 'untrusted' | 'not HTTP';

/** The facts of one request and its response, for every kind of outcome. */
export type Exchange = AnswerTime & {
  readonly sentAt: Instant;
  readonly durationMs: number;
  /** Null when no status line arrived. */
  readonly status: number | null;
  /** Bytes of the decoded body. */
  readonly bytes: number;
  readonly bodySha256: Uint8Array | null;
  /** The simulated market of the response; null when it does not come from a simulator. */
  readonly simulator: string | null;
  /** Null when a server responded, or at least accepted the connection. */
  readonly noContact: NoContact | null;
};

export type Refusal =
  /**
   * 402 (or 400) "… is not allowed in this plan". `notBefore` is the earliest instant that the text allows; null when it names none, because
   * the plan does not include the interval.
   */
  | { readonly reason: 'history limit'; readonly notBefore: Instant | null }
  /** 401 or 403: the upstream refuses the key, or the way it was sent, or this endpoint. */
  | { readonly reason: 'forbidden' }
  /** 404 with the upstream's own text for an id that does not exist. */
  | { readonly reason: 'unknown id' }
  /** Any other 404: the base URL is wrong, or the endpoint does not exist there. */
  | { readonly reason: 'unknown route' }
  /** 400 and other 4xx: the upstream does not understand the request. */
  | { readonly reason: 'bad request' };

export type Answer = {
  readonly exchange: Exchange;
} /** `body` is an object, an array, or (for a list of 4 MB or more) a `LongList`. */ & (
  | {
      readonly kind: 'answered';
      readonly body: unknown;
      /** The JSON text of `body` as it arrived, if the question has `withText`. */
      readonly text?: string;
    }
  /**
   * A redirect inside the configured origin; another request may follow it. `path` starts with `/` and includes the query,
   * which may contain the key. `shown` is for messages, without the query and the key.
   */
  | { readonly kind: 'moved'; readonly path: string; readonly shown: string }
  /**
   * `rate`: a 429. `quota`: a 402 that names no history limit. `retryAfterMs` comes from Retry-After or RateLimit-Reset; null when both are
   * missing.
   */
  | {
      readonly kind: 'limited';
      readonly by: 'rate' | 'quota';
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** 5xx, 408, 425, a broken or silent connection: Chandler retries later. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number | null; readonly message: string }
  | ({ readonly kind: 'refused'; readonly message: string } & Refusal)
  /**
   * A response that is not from the API: HTML, broken JSON, too large, a redirect elsewhere. `astray` is true when a wrong base URL would
   * explain it (a web page, a redirect to another origin).
   */
  | { readonly kind: 'malformed'; readonly message: string; readonly astray: boolean }
);

type WithoutExchange<T> = T extends { readonly exchange: Exchange } ? Omit<T, 'exchange'> : never;
/** The meaning of a response, without the facts of the exchange. */
export type Outcome = WithoutExchange<Answer>;

export type AuthScheme = 'bearer' | 'bare';

/** One call of the JSON-RPC interface (API document, section 4.2). */
export type RpcCall =
  | { readonly method: 'tools/list'; readonly cursor?: string }
  | {
      readonly method: 'tools/call';
      readonly tool: string;
      readonly arguments: Readonly<Record<string, string | number>>;
    };

export type Question = {
  /**
   * A path below the base URL, which starts with `/`: `/coins/btc-bitcoin/ohlcv/historical`. A path from `moved` is absolute on the origin
   * (`absolute` is true) and may include a query.
   */
  readonly path: string;
  readonly absolute?: boolean;
  readonly query?: Readonly<Record<string, string>>;
  /** True if `answered` shall also have the text of the response. */
  readonly withText?: boolean;
  /** The call of the JSON-RPC interface, which has one path for all calls. Only the client of that interface reads this field. */
  readonly rpc?: RpcCall;
  /** How the key is sent with this request; ignored without a key. */
  readonly scheme?: AuthScheme;
  readonly signal?: AbortSignal;
};

export type Upstream = {
  /** Sends exactly one HTTP request. Never retries, never follows a redirect, and never throws because of the network or the server. */
  send(question: Question): Promise<Answer>;
  close(): Promise<void>;
};
