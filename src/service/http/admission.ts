/** Before anything else: who is asking, and may they ask now? */
import type { MiddlewareHandler } from 'hono';
import { ACCOUNT_PATHS, BASE_PATH } from '../../contract/interface/paths.ts';
import type { Access, Allowance, Caller } from '../../contract/plan/access.ts';
import { refuse } from './answer.ts';
import { headerOf } from './request-input.ts';
import type { ServiceEnv } from './service-env.ts';

const ACCOUNT: readonly string[] = ACCOUNT_PATHS.map((path) => BASE_PATH + path);

export function admission(access: Access): MiddlewareHandler<ServiceEnv> {
  return async (c, next) => {
    const known = c.env?.admitted;
    const caller = known?.caller ?? callerOf(headerOf(c, 'authorization'), c.env?.address ?? 'here');
    c.set('caller', caller);
    const answer = known?.admission ?? (await access.admit(caller, aboutOf(c.req.path)));
    if (answer.allowance !== undefined) c.set('allowance', allowanceFields(answer.allowance));
    if (answer.kind === 'rejected') return refuse(c, answer.status, answer.message, answer.retryAfterSeconds);
    c.set('plan', answer.plan);
    return next();
  };
}

function aboutOf(path: string): 'account' | 'data' {
  return ACCOUNT.includes(path.replace(/\/$/, '')) ? 'account' : 'data';
}

/** Names and values in turn; named as upstream does (upstream-api.md, section 2). */
export function allowanceFields({ limit, remaining, resetSeconds }: Allowance): readonly string[] {
  return ['RateLimit-Limit', `${limit}`, 'RateLimit-Remaining', `${remaining}`, 'RateLimit-Reset', `${resetSeconds}`];
}

/** `Authorization: Bearer <key>` as the API document has it, or the bare key as the real service wants it (decision 7). */
export function callerOf(authorization: string | undefined, address: string): Caller {
  const value = authorization?.trim() ?? '';
  if (value === '') return { key: null, scheme: null, address };
  const bearer = /^bearer\s+(.+)$/i.exec(value);
  return bearer ? { key: bearer[1]!, scheme: 'bearer', address } : { key: value, scheme: 'bare', address };
}
