/** The kinds of answers that the service sends, each with its headers. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import type { Context } from 'hono';
import {
  DATABASE_STARTING,
  type ErrorBody,
  RETRY_AFTER_SECONDS,
  UNKNOWN_ID,
  UNKNOWN_ROUTE,
} from '../../contract/answer/errors.ts';
import { isFound, type Missing } from '../../contract/answer/not-found.ts';
import { AS_OF_HEADER, COVERAGE_HEADER, provenanceHeaders, provenanceOf } from '../../contract/answer/provenance.ts';
import { isCurrentOf } from '../../contract/answer/revalidation.ts';
import type { Reply } from '../../contract/interface/handler.ts';
import type { Caller } from '../../contract/plan/access.ts';
import { type CachedResponse, headerOf, type ServiceEnv } from './request-input.ts';

const gzip: (body: string | Uint8Array, options: { readonly level: number }) => Promise<Uint8Array> =
  promisify(gzipCallback);
/** A body is compressed once and sent often, so at a high level. The longest ones get a low level, because callers can request many of them. */
const gzipLevelOf = (length: number) => (length < 1_000_000 ? 6 : 1);
/** An ASCII body up to this length is sent as a string, in one piece with its headers. That is faster than a separate buffer. */
const MAX_STRING_BODY = 8_192;

/** `SHARED` is what upstream's free host sends (upstream-api.md, section 0). An answer for a key is for its holder only (decision 16). */
const SHARED = 'public, max-age=60, s-maxage=60, stale-while-revalidate=10, stale-if-error=600';
const PRIVATE = 'private, max-age=60';
const NO_STORE = 'no-store';
/** The content types of the two services behind upstream: the main one and the one for OHLCV. */
const MAIN_TYPE = 'application/json; charset=UTF-8';
const OHLCV_TYPE = 'application/json';

/** The headers that the script of a web page may read. */
const EXPOSED_HEADERS = [
  'ETag',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  COVERAGE_HEADER,
  AS_OF_HEADER,
].join(', ');

/** The headers of every answer. `Vary`, because the caller's plan decides what is visible. */
export const COMMON_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED_HEADERS,
  Vary: 'Accept-Encoding, Authorization',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** A browser that opens a data answer shows it as data. It runs no script and loads nothing, whatever the data contain. */
const DATA_HEADERS = { ...COMMON_HEADERS, 'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'" };
const DATA_HEADER_LIST: readonly string[] = Object.entries(DATA_HEADERS).flat();

type Headers = Readonly<Record<string, string>>;

function answer(c: Context<ServiceEnv>, status: number, headers: Headers, body: string | null): Response {
  const all = { ...DATA_HEADERS, ...headers, Date: c.get('date'), ...c.get('allowance') };
  return new Response(body, { status, headers: all });
}

/** How an answer may be cached, and which part of it is visible. */
type AnswerOptions = {
  /** The visible part of the source; default: all of it. */
  readonly visible?: object;
  /** Checked besides the source's own check: would the route send the source the same query now, and may it? `never`: the answer is not cached. */
  readonly isSameQuestion?: (() => boolean) | 'never';
};

/** A body of the main service, as from upstream: with charset, and a newline at the end. */
export function answerJson(c: Context<ServiceEnv>, source: object, options: AnswerOptions = {}): Response {
  return answerSource(c, MAIN_TYPE, source, `${JSON.stringify(options.visible ?? source)}\n`, options);
}

/** A body of the OHLCV service, as from upstream: without charset and newline. It is an empty list when nothing was found. */
export function answerCandles<T extends object>(
  c: Context<ServiceEnv>,
  source: T | Missing,
  write: (source: T) => string,
  options: Pick<AnswerOptions, 'isSameQuestion'> = {},
): Response {
  if (isFound(source)) return answerSource(c, OHLCV_TYPE, source, write(source), options);
  const headers = { 'Content-Type': OHLCV_TYPE, 'Cache-Control': cacheControlFor(c.get('caller')) };
  return answer(c, 200, { ...headers, ...provenanceHeaders(source) }, '[]');
}

/**
 * A source without provenance (a simulator) creates its answers anew each time and, like the upstream, sends no `ETag`. The tags are weak, because
 * the same answer is sent compressed and plain.
 */
function answerSource(
  c: Context<ServiceEnv>,
  contentType: string,
  source: object,
  text: string,
  { isSameQuestion = () => true }: AnswerOptions,
): Response {
  if (provenanceOf(source) === null) {
    const cacheControl = cacheControlFor(c.get('caller'));
    return answer(c, 200, { 'Content-Type': contentType, 'Cache-Control': cacheControl }, text);
  }
  const etag = `W/"${hash('sha1', text, 'base64url')}"`;
  const headers = [...DATA_HEADER_LIST, ...Object.entries(provenanceHeaders(source)).flat(), 'ETag', etag];
  const bytes = Buffer.from(text);
  const isShortAscii = bytes.length === text.length && text.length < MAX_STRING_BODY;
  const isCurrent = isCurrentOf(source);
  let compressed: Promise<Uint8Array> | null = null;
  const response: CachedResponse = {
    headers,
    contentType,
    etag,
    body: isShortAscii ? text : bytes,
    gzip: () => {
      compressed ??= gzip(bytes, { level: gzipLevelOf(bytes.length) });
      return compressed;
    },
    isCurrent: async () => isCurrent !== null && isSameQuestion !== 'never' && isSameQuestion() && isCurrent(),
  };
  if (isCurrent !== null && isSameQuestion !== 'never') c.get('store')?.(response);
  return respondWith(c, response);
}

/** The part of a reply that depends on the caller and on the moment. */
type ReplyInput = {
  /** The value of the `Date` header. */
  readonly date: string;
  readonly cacheControl: string;
  readonly allowance: Headers;
  readonly ifNoneMatch: string | undefined;
};

/** Replies with 304 when the client has this answer already. */
export function replyOf(cached: CachedResponse, { date, cacheControl, allowance, ifNoneMatch }: ReplyInput): Reply {
  const headers = [...cached.headers, 'Date', date, 'Cache-Control', cacheControl];
  for (const name in allowance) headers.push(name, allowance[name]!);
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, cached.etag)) return { status: 304, headers, body: null };
  headers.push('Content-Type', cached.contentType);
  return { status: 200, headers, body: cached.body, gzip: cached.gzip };
}

export function respondWith(c: Context<ServiceEnv>, cached: CachedResponse): Response {
  const { status, headers, body } = replyOf(cached, {
    date: c.get('date'),
    cacheControl: cacheControlFor(c.get('caller')),
    allowance: c.get('allowance') ?? {},
    // Of a POST it would be another condition (RFC 9110, 13.1.2), and nobody expects 304.
    ifNoneMatch: c.req.method === 'POST' ? undefined : headerOf(c, 'if-none-match'),
  });
  const pairs: [string, string][] = [];
  for (let i = 0; i < headers.length; i += 2) pairs.push([headers[i]!, headers[i + 1]!]);
  return new Response(body as string | Uint8Array<ArrayBuffer> | null, { status, headers: pairs });
}

/** Whether `If-None-Match` names this tag. The comparison is weak, as for every GET (RFC 9110, 13.1.2). */
function matches(ifNoneMatch: string, etag: string): boolean {
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((one) => {
    const given = one.trim();
    return given === '*' || given === opaque || given === etag;
  });
}

/** An answer for one caller at one moment. It is never cached. */
export function answerPrivately(c: Context<ServiceEnv>, body: unknown): Response {
  return answer(c, 200, { 'Content-Type': MAIN_TYPE, 'Cache-Control': NO_STORE }, `${JSON.stringify(body)}\n`);
}

export function refuse(
  c: Context<ServiceEnv>,
  status: 400 | 402 | 403 | 404 | 405 | 429 | 500 | 503,
  message: string,
  retryAfterSeconds?: number,
  more: Headers = {},
): Response {
  return answer(c, status, { ...refusalHeaders(retryAfterSeconds), ...more }, errorBody(message));
}

function refusalHeaders(retryAfterSeconds: number | undefined): Headers {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': NO_STORE };
  return retryAfterSeconds === undefined ? headers : { ...headers, 'Retry-After': String(retryAfterSeconds) };
}

function errorBody(message: string): string {
  return JSON.stringify({ error: message } satisfies ErrorBody);
}

/** 404, with the provenance of the "not found" if the source has one: upstream confirmed it, or the warehouse never received the data. */
export function refuseId(c: Context<ServiceEnv>, missing: Missing): Response {
  return refuse(c, 404, UNKNOWN_ID, undefined, provenanceHeaders(missing));
}

export function refuseRoute(c: Context<ServiceEnv>): Response {
  return answer(c, 404, { 'Content-Type': 'text/plain', 'Cache-Control': NO_STORE }, UNKNOWN_ROUTE);
}

const METHODS = 'GET, HEAD, POST, OPTIONS';

/** 405 for a path that exists. */
export function refuseMethod(c: Context<ServiceEnv>, allowed = METHODS): Response {
  return refuse(c, 405, `${c.req.method} is not possible here: use GET`, undefined, { Allow: allowed });
}

/**
 * Redirects as upstream does: with a relative location and a small page (upstream-api.md, section 0). Never absolute: upstream's absolute redirects
 * lead to `http:`, which makes clients drop TLS. `source` gives the provenance; null: none.
 */
export function redirect(c: Context<ServiceEnv>, location: string, source: object | null = null): Response {
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': cacheControlFor(c.get('caller')),
    Location: location,
    ...provenanceHeaders(source),
  };
  return answer(c, 301, headers, `<a href="${href}">Moved Permanently</a>.\n\n`);
}

/** The headers that MCP clients send besides the common ones. */
export const MCP_HEADERS = 'MCP-Protocol-Version, Mcp-Method, Mcp-Name';

/** What the script of a web page may send. */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': METHODS,
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, If-None-Match',
  'Access-Control-Max-Age': '86400',
};

/** The answer to a browser's preflight request. */
export function answerPreflight(c: Context<ServiceEnv>): Response {
  return answer(c, 204, PREFLIGHT, null);
}

/** The answer to everything while the database is starting: readable by web pages, and never cached. */
export function answerStarting({ method }: Request): Response {
  if (method === 'OPTIONS') {
    // A browser caches the answer for a day, and may need it for `/rpc` then.
    const allowed = `${PREFLIGHT['Access-Control-Allow-Headers']}, ${MCP_HEADERS}`;
    const headers = { ...DATA_HEADERS, ...PREFLIGHT, 'Access-Control-Allow-Headers': allowed };
    return new Response(null, { status: 204, headers });
  }
  const headers = { ...DATA_HEADERS, ...refusalHeaders(RETRY_AFTER_SECONDS) };
  return new Response(errorBody(DATABASE_STARTING), { status: 503, headers });
}

/** The `Cache-Control` header of an answer that may be cached. */
export function cacheControlFor({ key }: Caller): string {
  return key === null ? SHARED : PRIVATE;
}
