/** The secrets: the API key, the keys of S3 storage, the addresses of the webhook and of the heartbeat monitor, and the passwords of databases. */
import type { Config } from '../../config.ts';
import type { Environment } from '../../settings.ts';

/** The secrets of a valid configuration, for masking the log. */
export function secretsOf(config: Config): string[] {
  const passwords = [config.databaseUrl, config.serveDatabaseUrl, config.redisUrl].flatMap((url) => {
    const password = url === null ? '' : new URL(url).password;
    return password === '' ? [] : [password, decodeURIComponent(password)];
  });
  const addresses = [config.notify?.url ?? null, config.heartbeatUrl].flatMap((url) =>
    url === null ? [] : partsOf(url),
  );
  const { secretAccessKey = null, sessionToken = null } = config.s3.credentials ?? {};
  const keys = [config.apiKey, secretAccessKey, sessionToken].filter((key) => key !== null);
  return [...keys, ...passwords, ...addresses];
}

/**
 * The secrets of an environment that may be invalid, for masking everything printed. A short text is no secret, nor is one that is also the
 * user, the database or the host of its address (`postgres:postgres@…`): masking it would only garble the output.
 */
export function secretsIn(env: Environment): string[] {
  const keys = [env.CHANDLER_API_KEY, env.AWS_SECRET_ACCESS_KEY, env.AWS_SESSION_TOKEN].map((key) => key?.trim() ?? '');
  const passwords = [env.DATABASE_URL, env.CHANDLER_SERVE_DATABASE_URL, env.REDIS_URL].flatMap((text) => {
    const url = text !== undefined && URL.canParse(text.trim()) ? new URL(text.trim()) : null;
    const isKnown = url === null || [url.username, url.pathname.slice(1), url.hostname].includes(url.password);
    return isKnown ? [] : [url.password, decoded(url.password)];
  });
  const addresses = [env.CHANDLER_WEBHOOK_URL, env.CHANDLER_HEARTBEAT_URL].flatMap((text) => {
    const url = text?.trim() ?? '';
    return URL.canParse(url) ? [url, ...partsOf(url)] : [url];
  });
  return [...keys, ...passwords, ...addresses].filter((secret) => secret.length >= 8);
}

/** The whole address, and its path: knowing either is enough to post there. */
function partsOf(address: string): string[] {
  const { href, pathname, search } = new URL(address);
  // A short path is no secret, and masking it would garble the output.
  return [href, ...((pathname + search).length >= 12 ? [pathname + search] : [])];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
