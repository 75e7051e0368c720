/** Checks settings that are each valid but contradict each other. */
import type { Config } from '../../config.ts';
import { FREE_BASE_URL, PAID_BASE_URL } from '../../settings.ts';
import { type Check, fail, ok, warn } from './check.ts';

export function checkConfiguration(config: Config): Check[] {
  const { apiKey, baseUrl, plan } = config;
  const { protocol, host, hostname } = new URL(baseUrl);
  const checks: Check[] = [];
  if (apiKey === null && baseUrl === PAID_BASE_URL) {
    checks.push(
      fail(
        'key',
        `${host} answers only with a key`,
        `set CHANDLER_API_KEY, or leave out CHANDLER_BASE_URL for ${FREE_BASE_URL}`,
      ),
    );
  } else if (apiKey !== null && baseUrl === FREE_BASE_URL) {
    checks.push(
      warn('key', `${host} treats every key as the free plan`, `leave out CHANDLER_BASE_URL to use ${PAID_BASE_URL}`),
    );
  } else if (apiKey !== null && protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname)) {
    checks.push(warn('key', `the key travels unencrypted to ${host}`, 'use an https:// address in CHANDLER_BASE_URL'));
  } else
    checks.push(
      ok('key', apiKey === null ? 'none: anonymous' : `set (${apiKey.length} characters), sent only to ${host}`),
    );

  if (apiKey === null && plan !== 'free' && baseUrl === FREE_BASE_URL) {
    checks.push(fail('plan', `${plan} needs a key`, 'set CHANDLER_API_KEY, or leave out CHANDLER_PLAN'));
  } else checks.push(ok('plan', plan ?? 'as the account says'));
  return checks;
}
