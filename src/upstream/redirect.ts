/** Where a redirect leads: to the configured origin, which may be asked again, or elsewhere, where the key must never go. */
import type { Outcome } from './answer.ts';

type Redirect = Extract<Outcome, { kind: 'moved' | 'malformed' }>;

/** `location` as sent (relative or absolute), `asked` the URL that was asked. */
export function readRedirect(status: number, location: string | null, asked: URL): Redirect {
  const astray = (message: string): Redirect => ({
    kind: 'malformed',
    message: `${asked.host} ${message}`,
    astray: true,
  });
  if (!location) return astray(`answered ${status} without saying where to go`);
  if (!URL.canParse(location, asked.href)) return astray('redirects to an address that cannot be read');
  const target = new URL(location, asked);
  const path = target.pathname + target.search;
  if (target.origin !== asked.origin) {
    if (target.host === '') return astray(`redirects elsewhere, to a ${target.protocol} address: not followed`);
    const where = `${target.protocol}//${target.host}`;
    if (target.hostname === asked.hostname)
      return astray(`redirects to ${where}, which is not ${asked.origin}: not followed`);
    return astray(`redirects elsewhere, to ${where}: not followed`);
  }
  if (path === asked.pathname + asked.search) return astray(`redirects ${asked.pathname} to itself`);
  return { kind: 'moved', path, shown: target.pathname };
}
