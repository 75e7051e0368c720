/** Messages of configuration errors (a wrong key, a wrong address): each says what is wrong and how to correct it. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import type { NoContact } from '../../upstream/answer.ts';
import type { KeySent } from './auth-scheme.ts';

/** The upstream refused the key, or requires one; `message` has the status. */
export function wrongKey(message: string, sent: KeySent): string {
  if (sent === 'no key') {
    return `the upstream answers only with a key (${message}); set CHANDLER_API_KEY, or leave CHANDLER_BASE_URL out to use the free plan's host`;
  }
  const scheme = sent === 'as set' ? ', set CHANDLER_AUTH_SCHEME to auto to try both ways of sending it' : '';
  return `the upstream refused the key (${message}), ${HOW[sent]}; set CHANDLER_API_KEY to a key that is valid at CHANDLER_BASE_URL${scheme}, or unset it to use the free plan without a key`;
}

/** The same, from a process that sent no request because the upstream had refused the key before. */
export function refusedBefore(message: string, at: Instant, retryAt: Instant): string {
  return `${message} (the answer of ${formatInstant(at)}; the key is not tried again before ${formatInstant(retryAt)}, except by chandler doctor --online)`;
}

const HOW: Readonly<Record<Exclude<KeySent, 'no key'>, string>> = {
  'as set': 'sent as CHANDLER_AUTH_SCHEME says',
  'both ways': 'sent as Bearer and bare',
  'as before': 'sent as it has worked before',
};

/** The plan is unknown because the account request failed. */
export function planUnknown(message: string): string {
  return `the account's plan is not known yet (${message}); set CHANDLER_PLAN to start without this request`;
}

/** Something answers at the address, but it is not the upstream. */
export function wrongAddress(message: string): string {
  return `CHANDLER_BASE_URL does not answer like the market data API (${message}); it should be the REST base and end in /v1`;
}

/** The upstream answers with another market than the one this warehouse holds. */
export function otherOrigin(held: string | null, answered: string | null, setting: string): string {
  const marketOf = (simulator: string | null) =>
    simulator === null ? 'the real market' : `a simulated market (${simulator})`;
  return `this warehouse holds data of ${marketOf(held)}, and ${setting} answers with ${marketOf(answered)}; choose another warehouse with DATABASE_URL or CHANDLER_HOME, or correct the address`;
}

/** No upstream has ever answered at the address, or the server there uses another protocol. */
export function unreachable(baseUrl: string, message: string, why: NoContact): string {
  return `the upstream cannot be reached at CHANDLER_BASE_URL ${baseUrl} (${message}); ${REMEDY[why]}`;
}

const REMEDY: Readonly<Record<NoContact, string>> = {
  refused: 'correct the address, or start the server that should answer there',
  'unknown host': "correct the host, or check this machine's network and name server",
  'no network': "check this machine's network and the firewall between, or correct the host",
  'no TLS': 'write http:// if that server has no TLS, or correct its port',
  untrusted:
    'correct the host, have the certificate replaced, or name the authority that signed it with NODE_EXTRA_CA_CERTS',
  'not HTTP': 'write https:// if that server wants TLS, or correct its port',
};
