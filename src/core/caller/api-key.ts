/** The form of a key of this service: `chandler_<8>_<32>`. The first part is its public name; the second has 190 random bits. */
import { createHash, randomInt } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const NAME_LENGTH = 8;
const SECRET_LENGTH = 32;
const KEY = new RegExp(`^(chandler_[0-9A-Za-z]{${NAME_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH}}$`);

/** The plan without any limit; callers see the most similar plan instead. */
export const UNLIMITED = 'unlimited';

type NewApiKey = {
  /** Shown once, and not stored. */
  readonly key: string;
  readonly prefix: string;
  readonly hash: Uint8Array;
};

export function makeApiKey(): NewApiKey {
  const prefix = `chandler_${random(NAME_LENGTH)}`;
  const key = `${prefix}_${random(SECRET_LENGTH)}`;
  return { key, prefix, hash: hashApiKey(key) };
}

/** The public name in the key; null when the text does not have the form of a key. */
export function prefixOf(key: string): string | null {
  return KEY.exec(key)?.[1] ?? null;
}

/** A fast hash is enough, because nobody can guess 190 bits. */
export function hashApiKey(key: string): Uint8Array {
  return createHash('sha256').update(key).digest();
}

function random(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
