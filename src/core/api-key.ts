/** What a key of this service looks like: `chandler_<8>_<32>`. The first part names it and is no secret; the second has 190 random bits. */
import { createHash, randomInt } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const NAME_LENGTH = 8;
const SECRET_LENGTH = 32;
const KEY = new RegExp(`^(chandler_[0-9A-Za-z]{${NAME_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}$`);

/** What an operator calls a plan without any limit or wall; callers are shown the plan that comes nearest. */
export const UNLIMITED = 'unlimited';

export type NewApiKey = {
  /** Shown once, and kept nowhere. */
  readonly key: string;
  readonly prefix: string;
  readonly hash: Uint8Array;
};

export function makeApiKey(): NewApiKey {
  const prefix = `chandler_${random(NAME_LENGTH)}`;
  const key = `${prefix}_${random(SECRET_LENGTH)}`;
  return { key, prefix, hash: hashApiKey(key) };
}

/** Null: it cannot be one of ours. */
export function prefixOf(key: string): string | null {
  return KEY.exec(key)?.[1] ?? null;
}

/** A fast hash will do: nobody guesses 190 bits. */
export function hashApiKey(key: string): Uint8Array {
  return createHash('sha256').update(key).digest();
}

function random(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
