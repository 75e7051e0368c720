/** What one HTTP request to the upstream can come back as. Outcomes are data: nothing here is thrown. */
import type { Instant } from '../clock.ts';

/**
 * Why nobody was met who could be the upstream. Only a wrong address, or a missing network, looks like this; a server that
 * fails or is overloaded has been met.
 */
export type NoContact = 'refused' | 'unknown host' | 'no network' | 'no TLS' | 'untrusted' | 'not HTTP';

/** What was observed of the exchange, whatever it meant. */
export type Exchange = {
  readonly sentAt: Instant;
  readonly durationMs: number;
  /** Null when no status line arrived. */
  readonly status: number | null;
  /** Of the decoded body. */
  readonly bytes: number;
  readonly bodySha256: Uint8Array | null;
  /**
   * No fact in the body is newer than this: the earlier of our clock when we asked and the answer's `Date`, less its `Age`
   * (the upstream's caches serve answers up to eleven minutes old; upstream-api.md, section 0).
   */
  readonly asOf: Instant;
  /** How long a cache has had the answer, as it says (`Age`); 0: it comes from no cache. */
  readonly ageMs: number;
  /** What time it was there when the answer was made: its `Date`, less its `Age`; null when it does not say. */
  readonly date: Instant | null;
  /** The later of our clock and the answer's `Date`: nothing true can lie after it. */
  readonly latest: Instant;
  /** Which simulated market the answer is of, as a simulator says; null: no simulator's. */
  readonly simulator: string | null;
  /** Null when somebody answered, or at least took the connection. */
  readonly noContact: NoContact | null;
};

export type Refusal =
  /** 402 (or 400) "… is not allowed in this plan"; `notBefore` is the earliest instant the text allows, null when it names none (the interval is not in the plan). */
  | { readonly reason: 'wall'; readonly notBefore: Instant | null }
  /** 403: the key, or the way it was sent, or this endpoint. */
  | { readonly reason: 'forbidden' }
  /** 404 that says so in upstream's own words: no such id. */
  | { readonly reason: 'unknown id' }
  /** Any other 404: no such route; the base URL is wrong or the endpoint does not exist there. */
  | { readonly reason: 'unknown route' }
  /** 400 and other 4xx: the question itself is not understood. */
  | { readonly reason: 'bad request' };

export type Answer = {
  readonly exchange: Exchange;
} /** `body`: an object, an array, or (of more than 4 MB) a `LongList`. */ & (
  | {
      readonly kind: 'answered';
      readonly body: unknown;
      /** The JSON text of `body` as it came, where it was asked for. */
      readonly text?: string;
    }
  /**
   * A redirect inside the configured origin: ask again there, as another request. `path` starts with `/` and carries the query,
   * and with it perhaps the key; `shown` is for texts: without the query, and without the key.
   */
  | { readonly kind: 'moved'; readonly path: string; readonly shown: string }
  /** 429, or a 402 that is no wall. `retryAfterMs` from Retry-After or RateLimit-Reset, null when neither is there. */
  | {
      readonly kind: 'limited';
      readonly by: 'pace' | 'spent';
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** 5xx, 408, 425, a cut or silent connection: nobody's fault, ask again later. */
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number | null; readonly message: string }
  | ({ readonly kind: 'refused'; readonly message: string } & Refusal)
  /**
   * An answer that is not what the API gives: HTML, broken JSON, too large, a redirect elsewhere. `astray`: as a wrong base URL
   * would have it (a web page, a redirect to another origin).
   */
  | { readonly kind: 'malformed'; readonly message: string; readonly astray: boolean }
);

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
  /** Below the base URL, starts with `/`: `/coins/btc-bitcoin/ohlcv/historical`; may carry a query when it comes from `moved` (then it is absolute on the origin and `absolute` is true). */
  readonly path: string;
  readonly absolute?: boolean;
  readonly query?: Readonly<Record<string, string>>;
  /** The answer's own text is wanted, too. */
  readonly withText?: boolean;
  /** What the JSON-RPC interface is asked, which has one path for everything; only its client understands that. */
  readonly rpc?: RpcCall;
  /** How the key is sent this time; ignored without a key. */
  readonly scheme?: AuthScheme;
  readonly signal?: AbortSignal;
};

export type Upstream = {
  /** Sends exactly one HTTP request. Never retries, never follows a redirect, never throws for what the network or the server did. */
  send(question: Question): Promise<Answer>;
  close(): Promise<void>;
};
