/** The first step of every request: who is the caller, and may the caller send a request now? */
import type { MiddlewareHandler } from 'hono';
import { ACCOUNT_PATHS, BASE_PATH } from '../../contract/interface/paths.ts';
import type { Access, Allowance, Caller } from '../../contract/plan/access.ts';
import { refuse } from './answer.ts';
import { headerOf, type ServiceEnv } from './request-input.ts';

const ACCOUNT: readonly string[] = ACCOUNT_PATHS.map((path) => BASE_PATH + path);

export function admission(access: Access): MiddlewareHandler<ServiceEnv> {
  return async (c, next) => {
    const earlier = c.env?.admitted;
    const caller = earlier?.caller ?? callerOf(headerOf(c, 'authorization'), c.env?.address ?? 'here');
    c.set('caller', caller);
    const about = ACCOUNT.includes(c.req.path.replace(/\/$/, '')) ? 'account' : 'data';
    const answer = earlier?.admission ?? (await access.admit(caller, about));
    c.set('allowance', allowanceHeaders(answer.allowance));
    if (answer.kind === 'rejected') return refuse(c, answer.status, answer.message, answer.retryAfterSeconds);
    c.set('plan', answer.plan);
    return next();
  };
}

/** The headers have upstream's names (upstream-api.md, section 2). A caller without a limit gets none. */
export function allowanceHeaders(allowance: Allowance | undefined): Readonly<Record<string, string>> {
  if (allowance === undefined) return {};
  const { limit, remaining, resetSeconds } = allowance;
  return {
    'RateLimit-Limit': `${limit}`,
    'RateLimit-Remaining': `${remaining}`,
    'RateLimit-Reset': `${resetSeconds}`,
  };
}

/** `Authorization: Bearer <key>` as in the API document, or the key alone, which the real service expects (decision 7). */
export function callerOf(authorization: string | undefined, address: string): Caller {
  const value = authorization?.trim() ?? '';
  if (value === '') return { key: null, scheme: null, address };
  const bearer = /^bearer\s+(.+)$/i.exec(value);
  return bearer ? { key: bearer[1]!, scheme: 'bearer', address } : { key: value, scheme: 'bare', address };
}
