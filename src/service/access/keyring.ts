/**
 * Finds the key that a caller sent, and limits how fast one address can guess keys. Each key is read from the database at most every other
 * second, so a revoked key is refused soon.
 */
import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock, Instant } from '../../clock.ts';
import { hashApiKey, prefixOf } from '../../core/caller/api-key.ts';
import { type ApiKey, findApiKey, type HashedApiKey } from '../../store/callers/api-key.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { TokenBuckets } from './token-bucket.ts';

type Keyring = {
  /** Null when the key is unknown, revoked or expired. */
  find(key: string): Promise<ApiKey | null>;
  /** True when no key with this prefix is cached, so that finding it costs a statement. */
  isNew(key: string): boolean;
};

/** A revoked key still works for at most this long. */
const MAX_AGE_MS = 2_000;
const MAX_KEYS = 10_000;

export function createKeyring({ sql, clock }: { readonly sql: Sql; readonly clock: Clock }): Keyring {
  type Entry = { readonly readAt: Instant; readonly row: Promise<HashedApiKey | null> };
  const entries = new LRUCache<string, Entry>({ max: MAX_KEYS });
  const readRow = (prefix: string): Promise<HashedApiKey | null> => {
    const now = clock.now();
    const known = entries.get(prefix);
    if (known && now >= known.readAt && now - known.readAt < MAX_AGE_MS) return known.row;
    const entry: Entry = { readAt: now, row: findApiKey(sql, prefix) };
    entries.set(prefix, entry);
    entry.row.catch(() => {
      if (entries.peek(prefix) === entry) entries.delete(prefix);
    });
    return entry.row;
  };
  return {
    isNew(key) {
      const prefix = prefixOf(key);
      return prefix !== null && !entries.has(prefix);
    },
    async find(key) {
      const prefix = prefixOf(key);
      const row = prefix === null ? null : await readRow(prefix);
      // The comparison takes constant time, so that its duration does not show how much of the key is right.
      if (row === null || !timingSafeEqual(hashApiKey(key), row.hash)) return null;
      const isExpired = row.expiresAt !== null && row.expiresAt <= clock.now();
      return row.revokedAt !== null || isExpired ? null : row;
    },
  };
}

type TooEarly = { readonly lateMs: number };

/** Limits how fast one address can guess keys: an unknown key costs a look-up in the database, and counts when it was wrong. */
export function createKeyGuessLimiter(buckets: TokenBuckets, perSecond: number | null) {
  const lookUpsOf = new Map<string, Set<Promise<void>>>();
  /** Takes a token of this address. Null: there was one; otherwise how long the address must wait. */
  const countWrong = (address: string): TooEarly | null => {
    const lateMs = buckets.take(`guess:${address}`, perSecond);
    return lateMs === null ? null : { lateMs };
  };
  /** Puts the token back when the look-up has ended, unless the key was wrong. */
  const follow = <T>(address: string, lookingUp: Promise<T | null>): Promise<T | null> => {
    const lookUps = lookUpsOf.get(address) ?? new Set();
    lookUpsOf.set(address, lookUps);
    const isWrong = lookingUp.then(
      (found) => found === null,
      () => false,
    );
    const ended = isWrong.then((wrong) => {
      lookUps.delete(ended);
      if (lookUps.size === 0) lookUpsOf.delete(address);
      if (!wrong) buckets.putBack(`guess:${address}`, perSecond);
    });
    lookUps.add(ended);
    return lookingUp;
  };
  return {
    /** Counts a key that was found to be wrong without a look-up. Null: the service may tell the caller that the key is wrong. */
    countWrong,
    /**
     * Resolves to the result of `find`, or to how long the address must wait. Only a key that is not found counts, so the limiter never refuses
     * many good keys behind one address. While the look-ups in progress hold all tokens, further calls wait for them.
     */
    async lookUp<T>(address: string, find: () => Promise<T | null>): Promise<{ readonly found: T | null } | TooEarly> {
      for (;;) {
        const early = countWrong(address);
        if (early === null) return { found: await follow(address, find()) };
        const lookUps = lookUpsOf.get(address);
        if (lookUps === undefined) return early;
        await Promise.race(lookUps);
      }
    },
  };
}
