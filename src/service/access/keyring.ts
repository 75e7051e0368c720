/** Finds the key that a caller sent. Each is read from the database at most every other second, so a revoked key is refused soon. */
import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock, Instant } from '../../clock.ts';
import { hashApiKey, prefixOf } from '../../core/caller/api-key.ts';
import { type ApiKey, findApiKey, type HashedApiKey } from '../../store/callers/api-key.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type Keyring = {
  /** Null: unknown, revoked, or expired. */
  find(key: string): Promise<ApiKey | null>;
  /** No key with this prefix was read lately: to find it costs a statement. */
  isNew(key: string): boolean;
};

/** A revoked key stays good for at most this long. */
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
      // In constant time, however much of the key is right.
      if (row === null || !timingSafeEqual(hashApiKey(key), row.hash)) return null;
      const isExpired = row.expiresAt !== null && row.expiresAt <= clock.now();
      return row.revokedAt !== null || isExpired ? null : row;
    },
  };
}
