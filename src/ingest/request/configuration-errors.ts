/** What is said when no further try could help, because the key or the address is wrong: each as one sentence with what would be right. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { NoContact } from '../../upstream/answer.ts';
import type { KeySent } from './auth-scheme.ts';

/** Somebody refused the key, or that there was none; `message` says with which status. */
export function wrongKey(message: string, sent: KeySent): string {
  if (sent === 'no key') {
    return `the upstream answers only with a key (${message}); set CHANDLER_API_KEY, or leave CHANDLER_BASE_URL out to ask the free plan's host`;
  }
  const scheme = sent === 'as set' ? ', set CHANDLER_AUTH_SCHEME to auto to have both ways of sending it tried' : '';
  return `the upstream refused the key (${message}), ${HOW[sent]}; set CHANDLER_API_KEY to a key that is valid at CHANDLER_BASE_URL${scheme}, or unset it to ask anonymously on the free plan`;
}

/** The same, by somebody who has not asked again. */
export function refusedBefore(message: string, at: Instant, againAt: Instant): string {
  return `${message} (so it said at ${formatInstant(at)}, and is not asked again before ${formatInstant(againAt)}, but by chandler doctor --online)`;
}

const HOW: Readonly<Record<Exclude<KeySent, 'no key'>, string>> = {
  'as set': 'sent as CHANDLER_AUTH_SCHEME says',
  'both ways': 'sent as Bearer and bare',
  'as before': 'sent as it has worked before',
};

/** Of an upstream that does not answer the first question there is. */
export function planUnknown(message: string): string {
  return `the upstream has not said yet which plan the account has (${message}); CHANDLER_PLAN says it without being asked`;
}

/** Somebody answered, and it is not the upstream. */
export function wrongAddress(message: string): string {
  return `CHANDLER_BASE_URL does not answer like the market data API (${message}); it should be the REST base and end in /v1`;
}

/** Somebody answered, but with another market than the one this warehouse is of. */
export function otherOrigin(held: string | null, answered: string | null): string {
  const marketOf = (simulator: string | null) =>
    simulator === null ? 'the real market' : `a simulated market (${simulator})`;
  return `this warehouse holds data of ${marketOf(held)}, and CHANDLER_BASE_URL answers with ${marketOf(answered)}; choose another warehouse with DATABASE_URL or CHANDLER_HOME, or correct the address`;
}

/** Nobody answered who could be the upstream, now or ever before. */
export function unreachable(baseUrl: string, message: string, why: NoContact): string {
  return `the upstream cannot be reached at CHANDLER_BASE_URL ${baseUrl} (${message}); ${REMEDY[why]}`;
}

const REMEDY: Readonly<Record<NoContact, string>> = {
  refused: 'correct the address, or start what should answer there',
  'unknown host': "correct the host, or check this machine's network and name server",
  'no network': "check this machine's network and the firewall between, or correct the host",
  'no TLS': 'write http:// if that server has no TLS, or correct its port',
  untrusted:
    'correct the host, have the certificate mended, or name the authority that signed it with NODE_EXTRA_CA_CERTS',
  'not HTTP': 'write https:// if that server wants TLS, or correct its port',
};
