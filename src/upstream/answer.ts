/** The possible outcomes of one HTTP request to the upstream. Outcomes are data: nothing here is thrown. */
import type { Instant } from '../clock.ts';
import type { AnswerTime } from './answer-time.ts';

/** Why no server was reached that could be the upstream: a wrong address or a missing network. A server that fails was reached. */
export type NoContact = 'refused' | 'unknown host' | 'no network' | 'no TLS' | 'untrusted' | 'not HTTP';

/** The facts of one request and its response, whatever the response means. */
export type Exchange = AnswerTime & {
  readonly sentAt: Instant;
  readonly durationMs: number;
  /** Null when no status line arrived. */
  readonly status: number | null;
  /** Of the decoded body. */
  readonly bytes: number;
  readonly bodySha256: Uint8Array | null;
  /** Which simulated market the response is of; null: it does not come from a simulator. */
  readonly simulator: string | null;
  /** Null when a server responded, or at least accepted the connection. */
  readonly noContact: NoContact | null;
};

export type Refusal =
  /**
   * 402 (or 400) "… is not allowed in this plan"; `notBefore` is the earliest instant the text allows, null when it names none (the
   * interval is not in the plan).
   */
  | { readonly reason: 'history limit'; readonly notBefore: Instant | null }
  /** 403: the key, or the way it was sent, or this endpoint. */
  | { readonly reason: 'forbidden' }
  /** 404 that says so in upstream's own words: no such id. */
  | { readonly reason: 'unknown id' }
  /** Any other 404: no such route; the base URL is wrong or the endpoint does not exist there. */
  | { readonly reason: 'unknown route' }
  /** 400 and other 4xx: the request itself is not understood. */
  | { readonly reason: 'bad request' };

export type Answer = {
  readonly exchange: Exchange;
} /** `body`: an object, an array, or (of more than 4 MB) a `LongList`. */ & (
  | {
      readonly kind: 'answered';
      readonly body: unknown;
      /** The JSON text of `body` as it arrived, where it was asked for. */
      readonly text?: string;
    }
  /**
   * A redirect inside the configured origin, to be followed by another request. `path` starts with `/` and carries the query,
   * which may contain the key; `shown` is for messages: without the query and the key.
   */
  | { readonly kind: 'moved'; readonly path: string; readonly shown: string }
  /**
   * `rate`: a 429. `quota`: a 402 that names no history limit. `retryAfterMs` from Retry-After or RateLimit-Reset, null when neither is
   * there.
   */
  | {
      readonly kind: 'limited';
      readonly by: 'rate' | 'quota';
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** 5xx, 408, 425, a cut or silent connection: to be retried later. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number | null; readonly message: string }
  | ({ readonly kind: 'refused'; readonly message: string } & Refusal)
  /**
   * A response that is not the API's: HTML, broken JSON, too large, a redirect elsewhere. `astray`: a wrong base URL would explain
   * it (a web page, a redirect to another origin).
   */
  | { readonly kind: 'malformed'; readonly message: string; readonly astray: boolean }
);

type WithoutExchange<T> = T extends { readonly exchange: Exchange } ? Omit<T, 'exchange'> : never;
/** What a response means, by itself. */
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
   * Below the base URL, starts with `/`: `/coins/btc-bitcoin/ohlcv/historical`; may carry a query when it comes from `moved` (then it is
   * absolute on the origin and `absolute` is true).
   */
  readonly path: string;
  readonly absolute?: boolean;
  readonly query?: Readonly<Record<string, string>>;
  /** `answered` also carries the text of the response. */
  readonly withText?: boolean;
  /** The call of the JSON-RPC interface, which has one path for everything; only its client understands this field. */
  readonly rpc?: RpcCall;
  /** How the key is sent with this request; ignored without a key. */
  readonly scheme?: AuthScheme;
  readonly signal?: AbortSignal;
};

export type Upstream = {
  /** Sends exactly one HTTP request. Never retries, never follows a redirect, never throws for what the network or the server did. */
  send(question: Question): Promise<Answer>;
  close(): Promise<void>;
};
