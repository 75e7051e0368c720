/** What a request asks: its query and its ids, checked before any data is touched. */
import type { Context } from 'hono';
import { knownAbsent, type Nothing } from '../../contract/answer/not-found.ts';
import type { Peer } from '../../contract/interface/handler.ts';
import type { ServiceEnv } from './service-env.ts';

export type Asked = Context<ServiceEnv>;

/** Answers one endpoint. */
export type Answer = (c: Asked) => Response | Promise<Response>;

/** By its name in lower case; of several the first. */
export function headerOf(c: Asked, name: string): string | undefined {
  const headers = c.env?.headers;
  return headers === undefined ? c.req.header(name) : headerIn(headers, name);
}

/** The same, of what the socket's reader has. */
export function headerIn(headers: Peer['headers'], name: string): string | undefined {
  const value = headers?.[name];
  return typeof value === 'string' ? value : value?.[0];
}

export function queryOf(c: Asked): URLSearchParams {
  return new URLSearchParams(searchOf(c));
}

/** With its question mark; empty without a query. */
export function searchOf(c: Asked): string {
  const at = c.req.url.indexOf('?');
  return at < 0 ? '' : c.req.url.slice(at);
}

const LONGEST_ID = 200;

/** The id in the path under that name; null when nothing can be called so: too long, or with characters that no name has. */
export function idOf(c: Asked, name: string): string | null {
  const id = c.req.param(name) ?? '';
  return isPossibleId(id) ? id : null;
}

/** What an id stands on that nothing can have: nobody needs to be asked. */
export function impossible({ saysBasis }: { readonly saysBasis?: true }): Nothing {
  return saysBasis === true ? knownAbsent(null) : null;
}

export function isPossibleId(id: string): boolean {
  return id.length <= LONGEST_ID && /^[^\s\p{Cc}\p{Cs}\ufffd]+$/u.test(id);
}
