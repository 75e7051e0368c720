/**
 * Who may look at the dashboard: whoever sits at this machine, and operators who have signed in. Nobody acts without signing in.
 */
import { type BlockList, isIP } from 'node:net';
import type { Peer } from '../../contract/interface/handler.ts';
import { isTrusted } from '../../core/caller/address.ts';
import type { Operator } from './session.ts';

export type Visitor = {
  /** Null: not signed in, so this visitor may only look. */
  readonly operator: Operator | null;
};

/** What a reverse proxy adds: behind one, an address of this machine says nothing about who asks. */
const FORWARDED = /^(forwarded|x-forwarded-.*|x-real-ip|via)$/;

/**
 * Does the request come from a browser on this machine, for a page of this machine? A page of somebody else whose name leads to this
 * machine (DNS rebinding) has another `Host`.
 */
export function isOfThisMachine(peer: Peer | undefined, headers: Headers, trusted: BlockList | null): boolean {
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
 * Was the form sent by a page of ours? Browsers that say where a request comes from must say: from here. The token in the form decides;
 * this refuses the page of somebody else before anything is read.
 */
export function isOfOurPage(headers: Headers): boolean {
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
 * May this be answered to the page that asks? Others' pages can make a browser on this machine ask for anything, though they cannot read
 * the answer: they may only lead a person to a page.
 */
export function isAskedByOurs(headers: Headers): boolean {
  if (headers.get('sec-fetch-site') !== 'cross-site') return true;
  return headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
}
