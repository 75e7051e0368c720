/** The context of a request inside the service, and its input: headers, query and ids, checked before any data are read. */
import type { Context } from 'hono';
import { confirmedNotFound, type Missing } from '../../contract/answer/not-found.ts';
import type { IsCurrent } from '../../contract/answer/revalidation.ts';
import type { Peer } from '../../contract/interface/handler.ts';
import type { Admission, Caller } from '../../contract/plan/access.ts';
import type { PlanName } from '../../contract/plan/plans.ts';

/** A caller and the result of its admission, kept so that no request is counted twice. */
export type Admitted = { readonly caller: Caller; readonly admission: Admission };

export type ServiceEnv = {
  Bindings: Partial<Peer> & {
    /** Set when the caller was admitted or refused before the routes ran. */
    admitted?: Admitted | undefined;
  };
  Variables: {
    caller: Caller;
    plan: PlanName;
    /** The value of the `Date` header. */
    date: string;
    /** The `RateLimit-*` headers of a caller with a limit. */
    allowance?: Readonly<Record<string, string>>;
    /** Caches the answer to this request; not set when it may not be cached. */
    store?: (response: CachedResponse) => void;
  };
};

/** An answer, without the parts that depend on the caller and on the moment. */
export type CachedResponse = {
  /** Names and values alternate. The same headers serve replies with and without a body. */
  readonly headers: readonly string[];
  readonly contentType: string;
  readonly etag: string;
  /** A string holds ASCII characters only. */
  readonly body: string | Uint8Array;
  /** Compresses the body when the first client accepts it, and only once. */
  readonly gzip: () => Promise<Uint8Array>;
  readonly isCurrent: IsCurrent;
};

export type RequestInput = Context<ServiceEnv>;

/** Answers one endpoint. */
export type Answer = (c: RequestInput) => Response | Promise<Response>;

/** A header by its name in lower case; the first value if there are several. */
export function headerOf(c: RequestInput, name: string): string | undefined {
  const headers = c.env?.headers;
  return headers === undefined ? c.req.header(name) : headerIn(headers, name);
}

/** The same, for headers that Node.js has parsed. */
export function headerIn(headers: Peer['headers'], name: string): string | undefined {
  const value = headers?.[name];
  return typeof value === 'string' ? value : value?.[0];
}

/**
 * The parameters. All routes read them here: the key of the response cache is made by the same parser, and hono's own reads some spellings differently.
 */
export function queryOf(c: RequestInput): URLSearchParams {
  return new URLSearchParams(searchOf(c));
}

/** The query with its question mark; empty when there is none. */
export function searchOf(c: RequestInput): string {
  const at = c.req.url.indexOf('?');
  return at < 0 ? '' : c.req.url.slice(at);
}

const MAX_ID_LENGTH = 200;

/** The id in the path; null if it cannot be an id: it is too long, or has impossible characters. */
export function idOf(c: RequestInput, name: string): string | null {
  const id = c.req.param(name) ?? '';
  return isPossibleId(id) ? id : null;
}

/** The answer for an id that cannot exist. No data are read for it. */
export function impossibleId({ hasProvenance }: { readonly hasProvenance?: true }): Missing {
  return hasProvenance === true ? confirmedNotFound(null) : null;
}

export function isPossibleId(id: string): boolean {
  return id.length <= MAX_ID_LENGTH && /^[^\s\p{Cc}\p{Cs}\ufffd]+$/u.test(id);
}
