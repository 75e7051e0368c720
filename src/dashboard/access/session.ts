/** Who is signed in: the cookie of an operator, and the token that only Chandler's own forms contain. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock, Instant } from '../../clock.ts';
import { hashApiKey, prefixOf } from '../../core/caller/api-key.ts';
import { HOUR } from '../../core/interval.ts';
import { type ApiKey, findApiKey } from '../../store/callers/api-key.ts';
import { beginSession, endSession, findSession } from '../../store/callers/dashboard-session.ts';
import type { Sql } from '../../store/connection/connect.ts';

export const SESSION_COOKIE = 'chandler_session';
/** A working day. */
export const SESSION_MS = 12 * HOUR;
const TOKEN = /^[\w-]{43}$/;

/** The holder of an operator's key, signed in. */
export type Operator = {
  readonly keyId: number;
  /** How the audit log names the operator: by the name of the key, or by its first part if it has no name. */
  readonly name: string;
  /** Every form that changes something sends it back. The page of another site cannot know it. */
  readonly formToken: string;
};

type Signing = { readonly sql: Sql; readonly clock: Clock };

/** Resolves to the new cookie's value and its expiry. Null when the key is not a valid operator's key. */
export async function signIn(
  { sql, clock }: Signing,
  key: string,
): Promise<{ readonly token: string; readonly expiresAt: Instant } | null> {
  const now = clock.now();
  const prefix = prefixOf(key.trim());
  const row = prefix === null ? null : await findApiKey(sql, prefix);
  // In constant time, no matter how much of the key is right.
  if (row === null || !timingSafeEqual(hashApiKey(key.trim()), row.hash) || !isValid(row, now)) return null;
  const token = randomBytes(32).toString('base64url');
  const expiresAt = now + SESSION_MS;
  await beginSession(sql, { tokenHash: hashOf(token), keyId: row.id, createdAt: now, expiresAt });
  return { token, expiresAt };
}

export async function signOut({ sql }: Pick<Signing, 'sql'>, token: string): Promise<void> {
  if (TOKEN.test(token)) await endSession(sql, hashOf(token));
}

/** Null when the cookie is unknown or has expired, or when its key is no longer valid. */
export async function operatorOf({ sql, clock }: Signing, token: string | undefined): Promise<Operator | null> {
  if (token === undefined || !TOKEN.test(token)) return null;
  const session = await findSession(sql, hashOf(token), clock.now());
  if (session === null) return null;
  const { keyId, name, prefix } = session;
  return { keyId, name: name ?? prefix, formToken: formTokenOf(token) };
}

function isValid({ isOperator, revokedAt, expiresAt }: ApiKey, now: Instant): boolean {
  return isOperator && revokedAt === null && (expiresAt === null || expiresAt > now);
}

function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest();
}

function formTokenOf(token: string): string {
  return createHash('sha256').update(`form ${token}`).digest('base64url');
}

export function isFormToken({ formToken }: Operator, given: string): boolean {
  const [mine, theirs] = [Buffer.from(formToken), Buffer.from(given)];
  return mine.length === theirs.length && timingSafeEqual(mine, theirs);
}
