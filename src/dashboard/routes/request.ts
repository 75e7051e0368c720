/** Facts about a request for the routes of the dashboard. */
import type { Context } from 'hono';
import type { Peer } from '../../contract/interface/handler.ts';
import type { Visitor } from '../access/visitor.ts';

export type Env = { Bindings: { readonly peer: Peer | undefined }; Variables: { visitor: Visitor } };

/** Path and query. */
export function pathOf(c: Context<Env>): string {
  const { pathname, search } = new URL(c.req.url);
  return `${pathname}${search}`;
}

/** Returns only a path of the dashboard, never an address of another host. */
export function localPath(path: string): string {
  return /^\/(ui\/[\w\-./?&=%:+,~]*)?$/.test(path) && !path.includes('//') ? path : '/';
}

export function signInPath(c: Context<Env>): string {
  const undone = c.req.method === 'POST' ? '&undone=true' : '';
  return `/ui/sign-in?next=${encodeURIComponent(pathOf(c))}${undone}`;
}
