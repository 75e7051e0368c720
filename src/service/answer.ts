/** The few kinds of answer the service gives, with the headers each one has. */
import type { Context } from 'hono';
import { type ErrorBody, UNKNOWN_ROUTE } from '../contract/errors.ts';
import type { ServiceEnv } from './service-env.ts';

/** As the upstream's free host caches (upstream-api.md, section 0); what a key shows is for its holder only (decision 16). */
const SHARED = 'public, max-age=60, s-maxage=60, stale-while-revalidate=10, stale-if-error=600';
const PRIVATE = 'private, max-age=60';
const NEVER = 'no-store';

/** A body of the main service: charset and a newline at the end, as upstream. */
export function answerJson(c: Context<ServiceEnv>, body: unknown): Response {
  return c.body(`${JSON.stringify(body)}\n`, 200, {
    'Content-Type': 'application/json; charset=UTF-8',
    'Cache-Control': cacheControl(c),
  });
}

/** A body of the OHLCV service, ready written: neither charset nor newline, as upstream. */
export function answerWritten(c: Context<ServiceEnv>, text: string): Response {
  return c.body(text, 200, { 'Content-Type': 'application/json', 'Cache-Control': cacheControl(c) });
}

/** What belongs to one caller at one moment. */
export function answerPrivately(c: Context<ServiceEnv>, body: unknown): Response {
  return c.body(`${JSON.stringify(body)}\n`, 200, {
    'Content-Type': 'application/json; charset=UTF-8',
    'Cache-Control': NEVER,
  });
}

export function refuse(
  c: Context<ServiceEnv>,
  status: 400 | 402 | 403 | 404 | 429 | 500,
  message: string,
  retryAfterSeconds?: number,
): Response {
  const body: ErrorBody = { error: message };
  const headers: Record<string, string> = { 'Content-Type': 'application/json', 'Cache-Control': NEVER };
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds);
  return c.body(JSON.stringify(body), status, headers);
}

export function refuseRoute(c: Context<ServiceEnv>): Response {
  return c.body(UNKNOWN_ROUTE, 404, { 'Content-Type': 'text/plain', 'Cache-Control': NEVER });
}

/** The upstream's own redirect: relative, with a small page (upstream-api.md, section 0). */
export function redirect(c: Context<ServiceEnv>, location: string): Response {
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
  return c.body(`<a href="${href}">Moved Permanently</a>.\n\n`, 301, {
    'Content-Type': 'text/html; charset=utf-8',
    Location: location,
  });
}

function cacheControl(c: Context<ServiceEnv>): string {
  return c.var.caller.key === null ? SHARED : PRIVATE;
}
