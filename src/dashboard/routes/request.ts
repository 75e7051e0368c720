/** What the routes of the dashboard know of a request. */
import type { Context } from 'hono';
import type { Peer } from '../../contract/interface/handler.ts';
import type { Visitor } from '../access/visitor.ts';

export type Env = { Bindings: { readonly peer: Peer | undefined }; Variables: { visitor: Visitor } };

/** Path and query. */
export function pathOf(c: Context<Env>): string {
  const { pathname, search } = new URL(c.req.url);
  return `${pathname}${search}`;
}

/** A path of ours, and never an address of somebody else. */
export function localPath(path: string): string {
  return /^\/(ui\/[\w\-./?&=%:+,~]*)?$/.test(path) && !path.includes('//') ? path : '/';
}

export function signInPath(c: Context<Env>): string {
  const undone = c.req.method === 'POST' ? '&undone=true' : '';
  return `/ui/sign-in?next=${encodeURIComponent(pathOf(c))}${undone}`;
}
