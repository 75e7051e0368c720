/** Forms that work once, whichever process receives them: the browser may send a form again when the visitor reloads its answer. */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { endSession, useForm } from '../../store/callers/dashboard-session.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type Operator, SESSION_MS } from './session.ts';

/** The hidden value that makes a form unique. */
export function newFormId(): string {
  return randomBytes(16).toString('base64url');
}

export function isFormId(given: string): boolean {
  return /^[\w-]{22}$/.test(given);
}

type Using = { readonly sql: Sql; readonly clock: Clock };

/** False when this form was used before. Of two requests at the same time, one gets true. */
export function claimForm({ sql, clock }: Using, operator: Operator, once: string): Promise<boolean> {
  const now = clock.now();
  // The session of the form is over by then.
  const expiresAt = now + SESSION_MS;
  return useForm(sql, { tokenHash: hashOf(operator, once), keyId: operator.keyId, createdAt: now, expiresAt });
}

/** Call it when the action failed, so that the form may be sent again. */
export function releaseForm({ sql }: Pick<Using, 'sql'>, operator: Operator, once: string): Promise<void> {
  return endSession(sql, hashOf(operator, once));
}

/** No cookie has this hash, because no cookie has the length of the text that is hashed here. */
function hashOf({ formToken }: Operator, once: string): Uint8Array {
  return createHash('sha256').update(`once ${formToken} ${once}`).digest();
}
