/** Describes a failed connection in one plain sentence. */
import type { NoContact } from './answer.ts';

type Coded = {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
};

type NetworkFailure = { readonly message: string; readonly noContact: NoContact | null };

/**
 * Each entry: pattern of the code, sentence (`HOST` is `name:port` or `name`, `NAME` the name alone, `CODE` the code), and `noContact`. The first
 * match counts.
 */
const FAILURES: readonly (readonly [RegExp, string, NoContact | null])[] = [
  [/^ECONNREFUSED$/, 'HOST refused the connection: nothing listens there', 'refused'],
  [/^ENOTFOUND$/, 'the name NAME is not known: it does not resolve to an address', 'unknown host'],
  [/^EAI_AGAIN$/, 'the name NAME could not be looked up: the name server does not answer', 'no network'],
  [
    /^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/,
    'HOST cannot be reached from here: there is no route to it',
    'no network',
  ],
  [/^UND_ERR_CONNECT_TIMEOUT$/, 'HOST did not accept a connection in time', 'no network'],
  [/^ETIMEDOUT$/, 'HOST did not accept a connection in time', null],
  [/^UND_ERR_HEADERS_TIMEOUT$/, 'HOST took the request and did not answer in time', null],
  [/^UND_ERR_BODY_TIMEOUT$/, 'HOST stopped sending in the middle of its response', null],
  [
    /^(UND_ERR_SOCKET|ECONNRESET|EPIPE|ECONNABORTED|HPE_INVALID_EOF_STATE|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/,
    'HOST closed the connection before the whole response had arrived',
    null,
  ],
  // A server answered, but not in HTTP.
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW$)/, 'HOST answered with something that is not HTTP', 'not HTTP'],
  [/^(EPROTO|ERR_SSL)/, 'HOST does not speak TLS, or no version that Node accepts (CODE)', 'no TLS'],
  [
    /^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/,
    'the certificate of HOST cannot be trusted (CODE)',
    'untrusted',
  ],
  [/^/, 'the connection to HOST failed (CODE)', null],
];

/** The sentence never contains a stack trace. `host` is `name:port` or `name`. */
export function describeNetworkError(error: unknown, host: string): NetworkFailure {
  const { code, text } = rootOf(error);
  const [, sentence, noContact] = FAILURES.find(([codes]) => codes.test(code))!;
  const words = { HOST: host, NAME: host.replace(/:\d+$/, ''), CODE: code || text || 'no reason given' };
  const message = sentence.replace(/HOST|NAME|CODE/g, (word) => words[word as keyof typeof words]);
  return { message, noContact };
}

/** The innermost error with a code, because clients wrap the socket's error once or twice. */
function rootOf(error: unknown): { code: string; text: string } {
  let found = { code: '', text: '' };
  let at: unknown = error;
  for (let depth = 0; depth < 5 && at !== null && typeof at === 'object'; depth++) {
    const { name, code, message, cause, errors } = at as Coded;
    // Only some of undici's parser errors have a code.
    if (name === 'HTTPParserError') found = { code: 'HPE_', text: found.text };
    if (typeof code === 'string') found = { code, text: found.text };
    if (typeof message === 'string' && found.text === '') found = { ...found, text: message.split('\n')[0] ?? '' };
    at = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return found;
}
