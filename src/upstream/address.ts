/** The URL of a request: below the configured address, and never on another origin, because the key must not go there. */
import type { Outcome, Question } from './answer.ts';

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

/** The URL below the base or, if `absolute`, on its origin. @throws TypeError when it would be on another origin. */
export function urlOf(base: URL, { path, absolute, query }: Pick<Question, 'path' | 'absolute' | 'query'>): URL {
  if (!path.startsWith('/')) throw new TypeError(`a path starts with "/": "${path}"`);
  // The parts are joined as text. If the path were resolved as a reference, "//other.host/" would be another origin.
  const text = base.origin + (absolute ? '' : base.pathname.replace(/\/+$/, '')) + path;
  const parameters = new URLSearchParams(query).toString();
  const url = new URL(parameters === '' ? text : `${text}${path.includes('?') ? '&' : '?'}${parameters}`);
  if (url.origin !== base.origin) throw new TypeError(`the path "${path}" leaves ${base.origin}`);
  return url;
}

type Redirect = Extract<Outcome, { kind: 'moved' | 'malformed' }>;

/** The target of a redirect. `location` is the header as sent (relative or absolute); `requestUrl` is the URL of the request. */
export function readRedirect(status: number, location: string | null, requestUrl: URL): Redirect {
  const astray = (message: string): Redirect => ({
    kind: 'malformed',
    message: `${requestUrl.host} ${message}`,
    astray: true,
  });
  if (!location) return astray(`answered ${status} without a Location header`);
  if (!URL.canParse(location, requestUrl.href)) return astray('redirects to an invalid address');
  const target = new URL(location, requestUrl);
  const path = target.pathname + target.search;
  if (target.origin !== requestUrl.origin) {
    if (target.host === '') return astray(`redirects elsewhere, to a ${target.protocol} address: not followed`);
    const where = `${target.protocol}//${target.host}`;
    if (target.hostname === requestUrl.hostname)
      return astray(`redirects to ${where}, which is not ${requestUrl.origin}: not followed`);
    return astray(`redirects elsewhere, to ${where}: not followed`);
  }
  if (path === requestUrl.pathname + requestUrl.search) return astray(`redirects ${requestUrl.pathname} to itself`);
  return { kind: 'moved', path, shown: target.pathname };
}
