/** Where a redirect leads: somewhere we may ask (the configured origin), or somewhere the key must never go. */

export type Redirect =
  | { readonly kind: 'moved'; readonly path: string; readonly shown: string }
  | { readonly kind: 'astray'; readonly message: string };

/** `location` as sent (relative or absolute), `asked` the URL that was asked. */
export function readRedirect(status: number, location: string | null, asked: URL): Redirect {
  if (!location) return { kind: 'astray', message: `${asked.host} answered ${status} without saying where to go` };
  let target: URL;
  try {
    target = new URL(location, asked);
  } catch {
    return { kind: 'astray', message: `${asked.host} redirects to an address that cannot be read` };
  }
  if (target.origin === asked.origin) {
    const path = target.pathname + target.search;
    if (path === asked.pathname + asked.search) {
      return { kind: 'astray', message: `${asked.host} redirects ${asked.pathname} to itself` };
    }
    return { kind: 'moved', path, shown: target.pathname };
  }
  if (target.host === asked.host || target.hostname === asked.hostname) {
    return {
      kind: 'astray',
      message: `${asked.host} redirects to ${target.protocol}//${target.host}, which is not ${asked.origin}: not followed`,
    };
  }
  const where = target.host === '' ? `a ${target.protocol} address` : `${target.protocol}//${target.host}`;
  return { kind: 'astray', message: `${asked.host} redirects elsewhere, to ${where}: not followed` };
}
