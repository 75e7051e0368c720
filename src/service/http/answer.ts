/** The few kinds of answer the service gives, with the headers each one has. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import type { Context } from 'hono';
import { AWAY_SECONDS, type ErrorBody, UNKNOWN_ID, UNKNOWN_ROUTE } from '../../contract/answer/errors.ts';
import { isThere, type Nothing } from '../../contract/answer/not-found.ts';
import { plainAnswer } from '../../contract/answer/plain-answer.ts';
import { AS_OF_HEADER, basisHeaders, basisOf, COVERAGE_HEADER } from '../../contract/answer/provenance.ts';
import { stillTrueOf } from '../../contract/answer/revalidation.ts';
import type { Caller } from '../../contract/plan/access.ts';
import type { Written } from './cached-response.ts';
import { headerOf } from './request-input.ts';
import type { ServiceEnv } from './service-env.ts';

const gzip: (text: string, options: { readonly level: number }) => Promise<Uint8Array> = promisify(gzipCallback);
/** A text that is kept is packed once, and well; a very long one, of which anybody can have another one made, fast. */
const LONG_TEXT = 1_000_000;
const WELL = { level: 6 };
const FAST = { level: 1 };

/** As the upstream's free host caches (upstream-api.md, section 0); what a key shows is for its holder only (decision 16). */
const SHARED = 'public, max-age=60, s-maxage=60, stale-while-revalidate=10, stale-if-error=600';
const PRIVATE = 'private, max-age=60';
const NEVER = 'no-store';
/** As the two services behind upstream write it: the main one and the one for OHLCV. */
const MAIN_TYPE = 'application/json; charset=UTF-8';
const OHLCV_TYPE = 'application/json';

/** What of a record an answer shows, when that is not all of it: `variant` tells apart what is shown of the same record. */
export type Shown = { readonly variant: string; readonly as: () => unknown };

/** What a page's script may read of an answer. */
export const EXPOSED = [
  'ETag',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  COVERAGE_HEADER,
  AS_OF_HEADER,
].join(', ');

/** In every answer. `Vary`, because the plan of the caller decides what is shown. */
const OPEN = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED,
  Vary: 'Accept-Encoding, Authorization',
  // A browser that is led to an answer shows data, whatever is in them: no page, and nothing that a page could load.
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

const OPEN_LIST = Object.entries(OPEN).flat();

type Fields = Readonly<Record<string, string>>;

function answer(c: Context<ServiceEnv>, status: number, fields: Fields, body: string | null): Response {
  return plainAnswer({
    status,
    headers: [...OPEN_LIST, ...Object.entries(fields).flat(), 'Date', c.get('date'), ...(c.get('allowance') ?? [])],
    body,
  });
}

/** A body of the main service: charset and a newline at the end, as upstream. */
export function answerJson(c: Context<ServiceEnv>, source: object, shown?: Shown): Response {
  return answerSource(c, MAIN_TYPE, source, shown?.variant ?? '', () => {
    return `${JSON.stringify(shown ? shown.as() : source)}\n`;
  });
}

/** A body of the OHLCV service: neither charset nor newline, as upstream. */
export function answerCandles<T extends object>(
  c: Context<ServiceEnv>,
  source: T | Nothing,
  write: (source: T) => string,
): Response {
  if (isThere(source)) return answerSource(c, OHLCV_TYPE, source, '', () => write(source));
  const fields = { 'Content-Type': OHLCV_TYPE, 'Cache-Control': cacheControl(c) };
  return answer(c, 200, { ...fields, ...basisHeaders(source) }, '[]');
}

/** By source and variant. A source that answers the same object again has nothing new to say (basis.ts). */
const written = new WeakMap<object, Map<string, Written>>();

/**
 * A source that does not say what its answers stand on (a simulator) makes them anew each time and, like the upstream, gives no
 * `ETag`. Weak ones, because the same answer travels compressed and plain.
 */
function answerSource(
  c: Context<ServiceEnv>,
  type: string,
  source: object,
  variant: string,
  write: () => string,
): Response {
  if (basisOf(source) === null) {
    return answer(c, 200, { 'Content-Type': type, 'Cache-Control': cacheControl(c) }, write());
  }
  const kept = keptOf(source, type, variant, write);
  if (kept.stillTrue !== null) c.env?.keep?.(c.get('plan'), kept);
  return answerWritten(kept, {
    date: c.get('date'),
    cacheControl: cacheControl(c),
    allowance: c.get('allowance'),
    ifNoneMatch: headerOf(c, 'if-none-match'),
  });
}

/** What of an answer is of the one who asks, and of the moment. */
export type Asking = {
  readonly date: string;
  readonly cacheControl: string;
  readonly allowance: readonly string[] | undefined;
  readonly ifNoneMatch: string | undefined;
};

export function answerWritten(kept: Written, { date, cacheControl, allowance, ifNoneMatch }: Asking): Response {
  const headers = [...kept.headers, 'Date', date, 'Cache-Control', cacheControl];
  if (allowance !== undefined) headers.push(...allowance);
  if (ifNoneMatch !== undefined && isAmong(ifNoneMatch, kept.etag))
    return plainAnswer({ status: 304, headers, body: null });
  headers.push('Content-Type', kept.type);
  const { text: body, byteLength, encoded, packed } = kept;
  return plainAnswer({ status: 200, headers, body, byteLength, encoded, packed });
}

function keptOf(source: object, type: string, variant: string, write: () => string): Written {
  const variants = written.get(source) ?? new Map<string, Written>();
  if (variants.size === 0) written.set(source, variants);
  const kept = variants.get(variant);
  if (kept !== undefined) return kept;
  const text = write();
  const etag = `W/"${hash('sha1', text, 'base64url')}"`;
  let packing: Promise<Uint8Array> | null = null;
  let bytes: Uint8Array | null = null;
  const made: Written = {
    type,
    text,
    byteLength: Buffer.byteLength(text),
    etag,
    headers: [...OPEN_LIST, ...Object.entries(basisHeaders(source)).flat(), 'ETag', etag],
    encoded: () => {
      bytes ??= Buffer.from(text);
      return bytes;
    },
    packed: () => {
      packing ??= gzip(text, text.length < LONG_TEXT ? WELL : FAST);
      return packing;
    },
    stillTrue: stillTrueOf(source),
  };
  variants.set(variant, made);
  return made;
}

/** Does `If-None-Match` name this one? Weakly compared, as it is to be for GET (RFC 9110, 13.1.2). */
function isAmong(ifNoneMatch: string, etag: string): boolean {
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((one) => {
    const given = one.trim();
    return given === '*' || given === opaque || given === etag;
  });
}

/** What belongs to one caller at one moment. */
export function answerPrivately(c: Context<ServiceEnv>, body: unknown): Response {
  return answer(c, 200, { 'Content-Type': MAIN_TYPE, 'Cache-Control': NEVER }, `${JSON.stringify(body)}\n`);
}

export function refuse(
  c: Context<ServiceEnv>,
  status: 400 | 402 | 403 | 404 | 429 | 500 | 503,
  message: string,
  retryAfterSeconds?: number,
  more: Fields = {},
): Response {
  const body: ErrorBody = { error: message };
  const retry: Fields = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return answer(
    c,
    status,
    { 'Content-Type': 'application/json', 'Cache-Control': NEVER, ...retry, ...more },
    JSON.stringify(body),
  );
}

/** With what it stands on that there is no such thing, where the source says so: or nobody could tell it from what nobody has looked for. */
export function refuseId(c: Context<ServiceEnv>, nothing: Nothing): Response {
  return refuse(c, 404, UNKNOWN_ID, undefined, basisHeaders(nothing));
}

export function refuseRoute(c: Context<ServiceEnv>): Response {
  return answer(c, 404, { 'Content-Type': 'text/plain', 'Cache-Control': NEVER }, UNKNOWN_ROUTE);
}

/**
 * The upstream's own redirect: relative, with a small page (upstream-api.md, section 0). Never absolute: upstream's absolute ones lead
 * to `http:`, which makes clients drop TLS. `source`: what it was found by.
 */
export function redirect(c: Context<ServiceEnv>, location: string, source: object | null = null): Response {
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  const fields = {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': cacheControl(c),
    Location: location,
    ...basisHeaders(source),
  };
  return answer(c, 301, fields, `<a href="${href}">Moved Permanently</a>.\n\n`);
}

/** What MCP clients send beside what everybody sends. */
export const MCP_FIELDS = 'MCP-Protocol-Version, Mcp-Method, Mcp-Name';

/** What a page's script may send. */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, OPTIONS',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, If-None-Match',
  'Access-Control-Max-Age': '86400',
};
/** Whatever it is asked for later: the page keeps this for a day. */
const EARLY_PREFLIGHT = {
  ...PREFLIGHT,
  'Access-Control-Allow-Headers': `${PREFLIGHT['Access-Control-Allow-Headers']}, ${MCP_FIELDS}`,
};

/** Asked before a page's script may ask. */
export function answerPreflight(c: Context<ServiceEnv>): Response {
  return answer(c, 204, PREFLIGHT, null);
}

/** While there is nothing to answer from: as any other refusal, so that a page can read it, and nobody keeps it. */
export function answerNotYet({ method }: Request): Response {
  if (method === 'OPTIONS') {
    return plainAnswer({ status: 204, headers: [...OPEN_LIST, ...Object.entries(EARLY_PREFLIGHT).flat()], body: null });
  }
  const body: ErrorBody = { error: 'the database is not there yet, ask again in a few seconds' };
  const fields = { 'Content-Type': 'application/json', 'Cache-Control': NEVER, 'Retry-After': String(AWAY_SECONDS) };
  return plainAnswer({
    status: 503,
    headers: [...OPEN_LIST, ...Object.entries(fields).flat()],
    body: JSON.stringify(body),
  });
}

function cacheControl(c: Context<ServiceEnv>): string {
  return cacheControlFor(c.get('caller'));
}

/** Of what may be kept at all. */
export function cacheControlFor({ key }: Caller): string {
  return key === null ? SHARED : PRIVATE;
}
