/** The connection to Redis, and its errors explained in one sentence. */
import type { Redis } from 'ioredis';
import { asError } from '../../core/as-error.ts';
import { isDatabaseUnavailable } from '../../store/connection/database-unavailable.ts';
import { StoreError } from '../../store/connection/store-error.ts';

const CONNECT_MS = 10_000;
/** Longer than any call takes: a call without an answer after this time will not get one. */
const CALL_MS = 5_000;
/** A connection that is silent for this time during a call is replaced. Otherwise a lost connection would be noticed after fifteen minutes. */
const SILENT_MS = CALL_MS + 1_000;
/** The same for the connection of a worker: longer than the worker waits for a job. */
export const SILENT_WORKER_MS = 20_000;

/** The queue's Redis cannot be reached. The call may be repeated when Redis is back. */
export class QueueUnavailable extends StoreError {
  override readonly name = 'QueueUnavailable';

  constructor(error: Error, url: string) {
    const { problem, right } = explain(error, url);
    // The cause is left out, because it looks like an error of the database.
    super(problem, right);
  }
}

/** Errors of ioredis itself have no code, so their text identifies them. */
const UNAVAILABLE_TEXT =
  /^(Connection is closed|Stream isn't writeable|Command timed out|Socket timeout|Reached the max retries per request|LOADING |MASTERDOWN )/;

/**
 * Redis answers, but stores nothing: its memory is full, it cannot save to its disk, or it is a replica. An operator may repair that during the run.
 * Before Redis 7 the reason is at the end of the message, after the position in the script.
 */
const STORES_NOTHING = /(?:^|: )-?(OOM|MISCONF|READONLY) /;

export function isRedisUnavailable(error: unknown): boolean {
  return (
    isDatabaseUnavailable(error) ||
    (error instanceof Error && (UNAVAILABLE_TEXT.test(error.message) || STORES_NOTHING.test(error.message)))
  );
}

/**
 * A connection that, once open, reconnects automatically for ever. While Redis is unavailable, each call fails at once. @throws StoreError when Redis
 * cannot be reached or used.
 */
export async function openRedis(url: string): Promise<Redis> {
  // Most installations have no Redis, and loading ioredis takes a tenth of the start of any command.
  const { Redis: Connection } = await import('ioredis');
  const connection = new Connection(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    commandTimeout: CALL_MS,
    socketTimeout: SILENT_MS,
    lazyConnect: true,
    connectTimeout: CONNECT_MS,
  });
  let first: Error | undefined;
  const beforeReady = (error: Error) => {
    first ??= error;
  };
  connection.on('error', beforeReady);
  try {
    await connection.connect();
    // If the database number does not exist, ioredis only emits an error, and would use another database.
    if (first !== undefined) throw first;
  } catch (error) {
    connection.disconnect();
    throw explainRedisError(first ?? asError(error), url);
  }
  connection.off('error', beforeReady);
  return connection;
}

/** Explains the error in one sentence, without the password. */
export function explainRedisError(error: Error, url: string): StoreError {
  const { problem, right, isConfiguration } = explain(error, url);
  return new StoreError(problem, right, error, isConfiguration);
}

type Explained = { readonly problem: string; readonly right: string; readonly isConfiguration: boolean };

/** What is wrong, and how to correct it. `isConfiguration`: no retry can help. */
function explain(error: Error, url: string): Explained {
  const { hostname, port, username, protocol, pathname } = new URL(url);
  const at = `${hostname}:${port || 6379}`;
  const { message } = error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const passes = (problem: string, right: string) => ({ problem, right, isConfiguration: false });
  const stays = (problem: string, right: string) => ({ problem, right, isConfiguration: true });
  const found = (): Explained => {
    if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
      return passes(`the host ${hostname} of REDIS_URL cannot be found`, 'correct the name');
    if (/NOAUTH|WRONGPASS|invalid password|without any password/i.test(message)) {
      const who = username === '' ? '' : ` of user '${decodeURIComponent(username)}'`;
      return stays(`Redis at ${at} refuses the password${who}`, 'correct it in REDIS_URL');
    }
    if (/NOPERM/.test(message)) {
      const problem = `the user of REDIS_URL may not do all that a queue needs at ${at} (${message})`;
      return stays(problem, 'give it the rights');
    }
    const refusal = STORES_NOTHING.exec(message)?.[1];
    if (refusal === 'OOM') {
      const right = 'raise its maxmemory, or remove what others keep in it';
      return passes(`Redis at ${at} stores nothing: its memory is full (maxmemory)`, right);
    }
    if (refusal === 'MISCONF')
      return passes(`Redis at ${at} stores nothing: it cannot save to its disk`, 'make room on its disk, see its log');
    if (refusal === 'READONLY') return passes(`Redis at ${at} is a replica`, 'name the primary in REDIS_URL');
    if (/DB index|SELECT is not allowed/i.test(message)) {
      const problem = `Redis at ${at} has no database ${pathname.slice(1)}`;
      return stays(problem, 'correct the number at the end of REDIS_URL');
    }
    if (error.name === 'ParserError')
      return stays(`what answers at ${at} is not Redis`, 'correct host and port in REDIS_URL');
    if (/^(EPROTO|ERR_SSL|ERR_TLS)/.test(code)) {
      const problem = `Redis at ${at} does not speak TLS, which rediss:// asks for (${code})`;
      return stays(problem, 'write redis:// where nobody can listen');
    }
    if (/^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) {
      const problem = `the certificate of Redis at ${at} cannot be trusted (${code})`;
      return passes(problem, 'name the authority that signed it with NODE_EXTRA_CA_CERTS');
    }
    if (code === 'ETIMEDOUT') {
      const tls = protocol === 'rediss:' ? ', write redis:// if it has no TLS' : '';
      const right = `check host and port in REDIS_URL and the firewall between${tls}`;
      return passes(`Redis at ${at} does not answer`, right);
    }
    if (code === 'ECONNRESET' || code === 'EPIPE' || message === 'Connection is closed.') {
      const tls = protocol === 'rediss:' ? '' : ', write rediss:// if it wants TLS';
      return passes(`Redis at ${at} closes the connection`, `correct host and port in REDIS_URL${tls}`);
    }
    const why = code === 'ECONNREFUSED' ? 'connection refused' : code || message;
    return passes(`no Redis answers at ${at} (${why})`, 'start it, correct REDIS_URL');
  };
  const { problem, right, isConfiguration } = found();
  return { problem, right: `${right}, or leave REDIS_URL out to keep the queue in Postgres`, isConfiguration };
}
