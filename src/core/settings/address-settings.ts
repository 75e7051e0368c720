/** Settings that are addresses: parses each one, and shows it without its password. */
import { maskPasswords } from '../../log.ts';
import type { ParsedSetting, Problem } from './setting.ts';

export function parseRedisUrl(text: string): ParsedSetting<string> {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isRedis = url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && isDecodable(url.password);
  if (!isRedis) return wrong('which is not a Redis address; write it like redis://host:6379', masked(text));
  if (!/^\/?\d{0,5}$/.test(url.pathname)) {
    return wrong('which must end with the number of a database, like redis://host:6379/0', masked(text));
  }
  // The Redis client would read a query as its own options.
  if (url.search !== '' || url.hash !== '') return wrong('which must have no ? and no #', masked(text));
  return { ok: text };
}

/** False for a % that is not followed by two hex digits. */
function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

export const NO_WEB_ADDRESS = 'which is not a web address; it must start with https:// or http://';

export function webAddressOf(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : null;
}

export function parseHttpUrl(text: string): ParsedSetting<string> {
  const url = webAddressOf(text);
  if (url === null) return wrong(NO_WEB_ADDRESS, masked(text));
  if (url.username !== '' || url.password !== '') {
    return wrong('which contains a user name or password; leave them out and set CHANDLER_API_KEY', masked(text));
  }
  if (url.search !== '' || url.hash !== '') return wrong('which must end with its path: no ? and no #', masked(text));
  return { ok: text };
}

export function parseEndpoint(text: string): ParsedSetting<string> {
  const url = webAddressOf(text);
  if (url === null) return wrong(NO_WEB_ADDRESS, masked(text));
  if (url.username !== '' || url.password !== '')
    return wrong(
      'which contains keys; leave them out and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      masked(text),
    );
  return { ok: text };
}

export function wrong(problem: string, shown?: string): Problem {
  return shown === undefined ? { problem } : { problem, shown };
}

/** The address with its password masked, even when the address cannot be parsed. */
function masked(text: string): string {
  const at = text.lastIndexOf('@');
  return quoted(at === -1 ? maskPasswords(text) : `***${text.slice(at)}`);
}

export function quoted(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}
