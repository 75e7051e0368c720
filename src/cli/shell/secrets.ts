/** What must never be seen: the API key, the address of the webhook, and the passwords of databases. */
import type { Config, Environment } from '../../config.ts';

/** The texts of a configuration that no log, message or screen may show. */
export function secretsOf(config: Config): string[] {
  const passwords = [config.databaseUrl, config.serveDatabaseUrl, config.redisUrl].flatMap((url) => {
    const password = url === null ? '' : new URL(url).password;
    return password === '' ? [] : [password, decodeURIComponent(password)];
  });
  const webhook = config.notify === null ? [] : partsOf(config.notify.url);
  return [...(config.apiKey === null ? [] : [config.apiKey]), ...passwords, ...webhook];
}

/**
 * The same of an environment that may be wrong, for whatever is printed. A text that is short, or that the same address says
 * as a user or a database as well (`postgres:postgres@…`), is no secret, and masking it would only garble what is printed.
 */
export function secretsIn(env: Environment): string[] {
  const key = env.CHANDLER_API_KEY?.trim() ?? '';
  const passwords = [env.DATABASE_URL, env.CHANDLER_SERVE_DATABASE_URL, env.REDIS_URL].flatMap((text) => {
    const url = text !== undefined && URL.canParse(text.trim()) ? new URL(text.trim()) : null;
    const isKnown = url === null || [url.username, url.pathname.slice(1), url.hostname].includes(url.password);
    return isKnown ? [] : [url.password, decoded(url.password)];
  });
  const hook = env.CHANDLER_WEBHOOK_URL?.trim() ?? '';
  const webhook = URL.canParse(hook) ? [hook, ...partsOf(hook)] : [hook];
  return [key, ...passwords, ...webhook].filter((secret) => secret.length >= 8);
}

/** The whole address of a webhook, and what of it is not the host: either is enough to write there. */
function partsOf(address: string): string[] {
  const { href, pathname, search } = new URL(address);
  // A short path is no secret, and would garble what is printed.
  return [href, ...((pathname + search).length >= 12 ? [pathname + search] : [])];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
