/** The input of a request: its headers, its query and its ids, checked before any data are read. */
import type { Context } from 'hono';
import { confirmedNotFound, type Missing } from '../../contract/answer/not-found.ts';
import type { Peer } from '../../contract/interface/handler.ts';
import type { ServiceEnv } from './service-env.ts';

export type RequestInput = Context<ServiceEnv>;

/** Answers one endpoint. */
export type Answer = (c: RequestInput) => Response | Promise<Response>;

/** A header by its name in lower case; the first one of several. */
export function headerOf(c: RequestInput, name: string): string | undefined {
  const headers = c.env?.headers;
  return headers === undefined ? c.req.header(name) : headerIn(headers, name);
}

/** The same, out of the headers as Node.js parsed them. */
export function headerIn(headers: Peer['headers'], name: string): string | undefined {
  const value = headers?.[name];
  return typeof value === 'string' ? value : value?.[0];
}

export function queryOf(c: RequestInput): URLSearchParams {
  return new URLSearchParams(searchOf(c));
}

/** With its question mark; empty without a query. */
export function searchOf(c: RequestInput): string {
  const at = c.req.url.indexOf('?');
  return at < 0 ? '' : c.req.url.slice(at);
}

const MAX_ID_LENGTH = 200;

/** The id in the path; null when no id looks like that: too long, or with impossible characters. */
export function idOf(c: RequestInput, name: string): string | null {
  const id = c.req.param(name) ?? '';
  return isPossibleId(id) ? id : null;
}

/** The answer for an id that nothing can have; no data are read for it. */
export function impossibleId({ hasProvenance }: { readonly hasProvenance?: true }): Missing {
  return hasProvenance === true ? confirmedNotFound(null) : null;
}

export function isPossibleId(id: string): boolean {
  return id.length <= MAX_ID_LENGTH && /^[^\s\p{Cc}\p{Cs}\ufffd]+$/u.test(id);
}
