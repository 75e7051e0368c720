/** What a failed connection means, as one plain sentence. */
import type { NoContact } from './answer.ts';

type Coded = {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
};

export type NetworkFailure = { readonly message: string; readonly noContact: NoContact | null };

/** The sentence never carries a stack; `host` is `name:port` or `name`. */
export function describeNetworkError(error: unknown, host: string): NetworkFailure {
  const { code, text } = rootOf(error);
  const hostname = host.replace(/:\d+$/, '');
  const nobody = (message: string, noContact: NoContact | null = null) => ({ message, noContact });
  switch (code) {
    case 'ECONNREFUSED':
      return nobody(`${host} refused the connection: nothing listens there`, 'refused');
    case 'ENOTFOUND':
      return nobody(`the name ${hostname} is not known: it does not resolve to an address`, 'unknown host');
    case 'EAI_AGAIN':
      return nobody(`the name ${hostname} could not be looked up: the name server does not answer`, 'no network');
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
      return nobody(`${host} cannot be reached from here: there is no route to it`, 'no network');
    case 'UND_ERR_CONNECT_TIMEOUT':
      return nobody(`${host} did not accept a connection in time`, 'no network');
    case 'ETIMEDOUT':
      return nobody(`${host} did not accept a connection in time`);
    case 'UND_ERR_HEADERS_TIMEOUT':
      return nobody(`${host} took the request and did not answer in time`);
    case 'UND_ERR_BODY_TIMEOUT':
      return nobody(`${host} fell silent in the middle of its answer`);
    case 'UND_ERR_SOCKET':
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ECONNABORTED':
    case 'HPE_INVALID_EOF_STATE':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return nobody(`${host} closed the connection before the whole answer had arrived`);
  }
  // Something did answer, but not in HTTP.
  if (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return nobody(`${host} answered with something that is not HTTP`, 'not HTTP');
  }
  if (/^(EPROTO|ERR_SSL)/.test(code)) {
    return nobody(`${host} does not speak TLS, or none that Node accepts (${code})`, 'no TLS');
  }
  if (/^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) {
    return nobody(`the certificate of ${host} cannot be trusted (${code})`, 'untrusted');
  }
  return nobody(`the connection to ${host} failed (${code || text || 'no reason given'})`);
}

/** The innermost error that carries a code: clients wrap the socket's own error once or twice. */
function rootOf(error: unknown): { code: string; text: string } {
  let found = { code: '', text: '' };
  let at: unknown = error;
  for (let depth = 0; depth < 5 && at !== null && typeof at === 'object'; depth++) {
    const { name, code, message, cause, errors } = at as Coded;
    // Undici's parser errors have only sometimes a code.
    if (name === 'HTTPParserError') found = { code: 'HPE_', text: found.text };
    if (typeof code === 'string') found = { code, text: found.text };
    if (typeof message === 'string' && found.text === '') found = { ...found, text: message.split('\n')[0] ?? '' };
    at = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return found;
}
