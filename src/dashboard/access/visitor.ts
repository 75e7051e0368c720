/** Who may look at the dashboard: users of this machine, and operators who have signed in. Nobody may change anything without signing in. */
import { type BlockList, isIP } from 'node:net';
import type { Peer } from '../../contract/interface/handler.ts';
import { isTrusted } from '../../core/caller/address.ts';
import type { Operator } from './session.ts';

export type Visitor = {
  /** Null when the visitor is not signed in and may only look. */
  readonly operator: Operator | null;
};

/** Headers that a reverse proxy adds. Behind a proxy, a local peer address does not show where the visitor is. */
const FORWARDED = /^(forwarded|x-forwarded-.*|x-real-ip|via)$/;

/**
 * Whether the request comes from a browser on this machine, for a page of this machine. Another site whose name resolves to this machine
 * (DNS rebinding) has another `Host`.
 */
export function isLocalVisitor(peer: Peer | undefined, headers: Headers, trusted: BlockList | null): boolean {
  if (peer === undefined || [...headers.keys()].some((name) => FORWARDED.test(name))) return false;
  if (isTrusted(peer.address, trusted)) return false;
  return isLoopback(peer.address) && isLoopback(hostOf(headers.get('host') ?? ''));
}

function hostOf(host: string): string {
  return host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}

function isLoopback(name: string): boolean {
  const plain = name.replace(/^::ffff:/i, '');
  if (isIP(plain) === 4) return plain.startsWith('127.');
  return plain === '::1' || plain.toLowerCase() === 'localhost';
}

/**
 * Whether a page of Chandler sent the form. If the browser says where the request comes from, it must be here. The token in the form
 * decides; this check refuses other sites before anything is read.
 */
export function isSentByOwnPage(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site');
  const origin = headers.get('origin');
  if (site !== null && site !== 'same-origin' && site !== 'none') return false;
  if (origin === null) return true;
  try {
    return new URL(origin).host === headers.get('host');
  } catch {
    return false;
  }
}

/**
 * Whether to answer the page that sends this request. Other sites can make a browser on this machine send any request, although they cannot
 * read the answer. They may only open a page for the visitor.
 */
export function isFromAllowedSite(headers: Headers): boolean {
  if (headers.get('sec-fetch-site') !== 'cross-site') return true;
  return headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
}
