/** Forms that work once, whichever process gets them: the browser may send a form again when its answer is reloaded. */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { putBackForm, useForm } from '../../store/callers/dashboard-session.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Operator, SESSION_MS } from './session.ts';

/** The hidden value of a form. */
export function newOnce(): string {
  return randomBytes(16).toString('base64url');
}

export function isOnce(given: string): boolean {
  return /^[\w-]{22}$/.test(given);
}

type Using = { readonly sql: Sql; readonly clock: Clock };

/** False: this form was used before. Of two that come at the same time, one is. */
export function useOnce({ sql, clock }: Using, operator: Operator, once: string): Promise<boolean> {
  const now = clock.now();
  // The session whose form it was is over by then.
  const expiresAt = now + SESSION_MS;
  return useForm(sql, { tokenHash: hashOf(operator, once), keyId: operator.keyId, createdAt: now, expiresAt });
}

/** What the form asked for was not done: it may be sent again. */
export function putBackOnce({ sql }: Pick<Using, 'sql'>, operator: Operator, once: string): Promise<void> {
  return putBackForm(sql, hashOf(operator, once));
}

/** No cookie has this hash: none is as long as what is hashed here. */
function hashOf({ formToken }: Operator, once: string): Uint8Array {
  return createHash('sha256').update(`once ${formToken} ${once}`).digest();
}
