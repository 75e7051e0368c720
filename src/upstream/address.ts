/** The URL of a request: below the configured address, and never on another origin. */
import type { Question } from './answer.ts';

/** @throws TypeError when it is not a plain http or https address. */
export function readAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new TypeError(`the base URL "${text}" is not an http or https address`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError(`the base URL of ${url.host} may have no credentials, query or fragment`);
  }
  return url;
}

/** Below the base, or absolute on its origin. @throws TypeError when it would leave that. */
export function urlOf(base: URL, { path, absolute, query }: Pick<Question, 'path' | 'absolute' | 'query'>): URL {
  if (!path.startsWith('/')) throw new TypeError(`a path starts with "/": "${path}"`);
  // Joined as text: resolved as a reference, "//other.host/" would be another origin.
  const text = base.origin + (absolute ? '' : base.pathname.replace(/\/+$/, '')) + path;
  const asked = new URLSearchParams(query).toString();
  const url = new URL(asked === '' ? text : `${text}${path.includes('?') ? '&' : '?'}${asked}`);
  if (url.origin !== base.origin) throw new TypeError(`the path "${path}" leaves ${base.origin}`);
  return url;
}
