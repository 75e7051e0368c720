/** Passwords of database logins. Chandler sends Postgres only a verifier, so the password itself is in no statement and no log. */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

const ITERATIONS = 4_096;

/** 192 random bits, in characters that need no escape in a URL. */
export function makePassword(): string {
  return randomBytes(24).toString('base64url');
}

/** The SCRAM-SHA-256 verifier of an ASCII password (RFC 5803). Postgres stores it unchanged. */
export function scramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const key = (name: string) => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(key('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${key('Server Key').toString('base64')}`;
}
