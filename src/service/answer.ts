/** The few kinds of answer the service gives, with the headers each one has. */
import { hash } from 'node:crypto';
import type { Context } from 'hono';
import { basisHeaders, basisOf } from '../contract/basis.ts';
import { type ErrorBody, UNKNOWN_ID, UNKNOWN_ROUTE } from '../contract/errors.ts';
import type { ServiceEnv } from './service-env.ts';

/** As the upstream's free host caches (upstream-api.md, section 0); what a key shows is for its holder only (decision 16). */
const SHARED = 'public, max-age=60, s-maxage=60, stale-while-revalidate=10, stale-if-error=600';
const PRIVATE = 'private, max-age=60';
const NEVER = 'no-store';
/** As the two services behind upstream write it: the main one and the one for OHLCV. */
const MAIN_TYPE = 'application/json; charset=UTF-8';
const OHLCV_TYPE = 'application/json';

/** What of a record an answer shows, when that is not all of it: `variant` tells apart what is shown of the same record. */
export type Shown = { readonly variant: string; readonly as: () => unknown };

/** A body of the main service: charset and a newline at the end, as upstream. */
export function answerJson(c: Context<ServiceEnv>, source: object, shown?: Shown): Response {
  return answerText(c, MAIN_TYPE, source, shown?.variant ?? '', () => {
    return `${JSON.stringify(shown ? shown.as() : source)}\n`;
  });
}

/** A body of the OHLCV service: neither charset nor newline, as upstream. */
export function answerCandles<T extends object>(
  c: Context<ServiceEnv>,
  source: T | null,
  write: (source: T) => string,
): Response {
  if (source === null) return c.body('[]', 200, { 'Content-Type': OHLCV_TYPE, 'Cache-Control': cacheControl(c) });
  return answerText(c, OHLCV_TYPE, source, '', () => write(source));
}

type Written = { readonly text: string; readonly headers: Readonly<Record<string, string>> };

/** By source and variant. A source that answers the same object again has nothing new to say (basis.ts). */
const written = new WeakMap<object, Map<string, Written>>();

/**
 * A source that does not say what its answers stand on (a simulator) makes them anew each time and, like the upstream, gives no
 * `ETag`. Weak ones, because the same answer travels compressed and plain.
 */
function answerText(
  c: Context<ServiceEnv>,
  type: string,
  source: object,
  variant: string,
  write: () => string,
): Response {
  if (basisOf(source) === null) {
    return c.body(write(), 200, { 'Content-Type': type, 'Cache-Control': cacheControl(c) });
  }
  const { text, headers } = keptOf(source, variant, write);
  const all = { ...headers, 'Cache-Control': cacheControl(c) };
  const known = c.req.header('If-None-Match');
  if (known !== undefined && isAmong(known, headers.ETag!)) return c.body(null, 304, all);
  return c.body(text, 200, { ...all, 'Content-Type': type });
}

function keptOf(source: object, variant: string, write: () => string): Written {
  const variants = written.get(source) ?? new Map<string, Written>();
  if (variants.size === 0) written.set(source, variants);
  const kept = variants.get(variant);
  if (kept !== undefined) return kept;
  const text = write();
  const made = { text, headers: { ...basisHeaders(source), ETag: `W/"${hash('sha1', text, 'base64url')}"` } };
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
  return c.body(`${JSON.stringify(body)}\n`, 200, { 'Content-Type': MAIN_TYPE, 'Cache-Control': NEVER });
}

export function refuse(
  c: Context<ServiceEnv>,
  status: 400 | 402 | 403 | 404 | 429 | 500 | 503,
  message: string,
  retryAfterSeconds?: number,
): Response {
  const body: ErrorBody = { error: message };
  const headers: Record<string, string> = { 'Content-Type': 'application/json', 'Cache-Control': NEVER };
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  return c.body(JSON.stringify(body), status, headers);
}

export function refuseId(c: Context<ServiceEnv>): Response {
  return refuse(c, 404, UNKNOWN_ID);
}

export function refuseRoute(c: Context<ServiceEnv>): Response {
  return c.body(UNKNOWN_ROUTE, 404, { 'Content-Type': 'text/plain', 'Cache-Control': NEVER });
}

/**
 * The upstream's own redirect: relative, with a small page (upstream-api.md, section 0). Never absolute: upstream's absolute ones lead
 * to `http:`, which makes clients drop TLS.
 */
export function redirect(c: Context<ServiceEnv>, location: string): Response {
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  return c.body(`<a href="${href}">Moved Permanently</a>.\n\n`, 301, {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': cacheControl(c),
    Location: location,
  });
}

function cacheControl(c: Context<ServiceEnv>): string {
  return c.var.caller.key === null ? SHARED : PRIVATE;
}
