/** The connection to Redis, and what can be wrong with it as one sentence. */
import { Redis } from 'ioredis';
import { asError } from '../../core/as-error.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { StoreError } from '../../store/connection/store-error.ts';

const PATIENCE_MS = 10_000;

/** Longer than any single call takes: one that is not answered within is not answered at all. */
const CALL_MS = 5_000;
/** A connection that is silent with something to answer is made anew: one whose other end has gone without a word stays so for a quarter of an hour. */
const SILENT_MS = CALL_MS + 1_000;
/** Of one that waits for work: longer than Redis lets it wait. */
export const SILENT_WORKER_MS = 20_000;

/** The queue's Redis cannot be reached: what was asked of it may be asked again when it is back. */
export class QueueUnavailable extends StoreError {
  override readonly name = 'QueueUnavailable';

  constructor(error: Error, url: string) {
    const { problem, right } = sayRedisError(error, url);
    // Without its cause: that reads like one of the database.
    super(problem, right);
  }
}

/** Those of ioredis itself have no code. */
const UNAVAILABLE_TEXT =
  /^(Connection is closed|Stream isn't writeable|Command timed out|Socket timeout|Reached the max retries per request|LOADING |MASTERDOWN )/;

export function isRedisUnavailable(error: unknown): boolean {
  return isDatabaseUnavailable(error) || (error instanceof Error && UNAVAILABLE_TEXT.test(error.message));
}

/**
 * One that reconnects by itself for ever, once it has been up. Until it is back, what is asked fails at once. @throws StoreError when it cannot be
 * reached or used.
 */
export async function openRedis(url: string): Promise<Redis> {
  const connection = new Redis(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout: CALL_MS,
    socketTimeout: SILENT_MS,
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
  });
  let first: Error | undefined;
  const beforeReady = (error: Error) => {
    first ??= error;
  };
  connection.on('error', beforeReady);
  try {
    await connection.connect();
    // A database that it does not have is told in passing: it would go on in another one.
    if (first !== undefined) throw first;
  } catch (error) {
    connection.disconnect();
    throw explainRedisError(first ?? asError(error), url);
  }
  connection.off('error', beforeReady);
  return connection;
}

/** In one sentence, without the password. */
export function explainRedisError(error: Error, url: string): StoreError {
  const { problem, right, isConfiguration } = sayRedisError(error, url);
  return new StoreError(problem, right, error, isConfiguration);
}

type Said = { readonly problem: string; readonly right: string; readonly isConfiguration: boolean };

function sayRedisError(error: Error, url: string): Said {
  const { hostname, port, username, protocol, pathname } = new URL(url);
  const at = `${hostname}:${port || 6379}`;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const hint = 'or leave REDIS_URL out to keep the queue in Postgres';
  const say = (problem: string, right: string, isConfiguration = false) => ({
    problem,
    right: `${right}, ${hint}`,
    isConfiguration,
  });
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return say(`the host ${hostname} of REDIS_URL cannot be found`, 'correct the name');
  }
  if (/NOAUTH|WRONGPASS|invalid password|without any password/i.test(error.message)) {
    const who = username === '' ? '' : ` of user '${decodeURIComponent(username)}'`;
    return say(`Redis at ${at} refuses the password${who}`, 'correct it in REDIS_URL', true);
  }
  if (/NOPERM/.test(error.message)) {
    return say(
      `the user of REDIS_URL may not do all that a queue needs at ${at} (${error.message})`,
      'give it the rights',
      true,
    );
  }
  if (/DB index|SELECT is not allowed/i.test(error.message)) {
    return say(
      `Redis at ${at} has no database ${pathname.slice(1)}`,
      'correct the number at the end of REDIS_URL',
      true,
    );
  }
  if (error.name === 'ParserError')
    return say(`what answers at ${at} is not Redis`, 'correct host and port in REDIS_URL', true);
  if (/^(EPROTO|ERR_SSL|ERR_TLS)/.test(code)) {
    return say(
      `Redis at ${at} does not speak TLS, which rediss:// asks for (${code})`,
      'write redis:// where nobody can listen',
      true,
    );
  }
  if (/^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) {
    return say(
      `the certificate of Redis at ${at} cannot be trusted (${code})`,
      'name the authority that signed it with NODE_EXTRA_CA_CERTS',
    );
  }
  if (code === 'ETIMEDOUT') {
    const tls = protocol === 'rediss:' ? ', write redis:// if it has no TLS' : '';
    return say(`Redis at ${at} does not answer`, `check host and port in REDIS_URL and the firewall between${tls}`);
  }
  if (code === 'ECONNRESET' || code === 'EPIPE' || error.message === 'Connection is closed.') {
    const tls = protocol === 'rediss:' ? '' : ', write rediss:// if it wants TLS';
    return say(`Redis at ${at} closes the connection`, `correct host and port in REDIS_URL${tls}`);
  }
  const why = code === 'ECONNREFUSED' ? 'connection refused' : code || error.message;
  return say(`no Redis answers at ${at} (${why})`, 'start it, correct REDIS_URL');
}
