/** Finds the key that a caller has sent; looks into the database for each at most every other second, so a revoked one is refused soon. */
import { timingSafeEqual } from 'node:crypto';
import type { Clock, Instant } from '../../clock.ts';
import { hashApiKey, prefixOf } from '../../core/api-key.ts';
import { type ApiKey, findApiKey, type HashedApiKey } from '../../store/callers/api-key.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type Keyring = {
  /** Null: not one of ours, revoked, or expired. */
  find(key: string): Promise<ApiKey | null>;
  /** Nothing with this prefix was looked up lately: to find it costs a statement. */
  isNew(key: string): boolean;
};

/** How long a revoked key may still be good. */
const FRESH_MS = 2_000;
const MOST_KEPT = 10_000;

type Kept = { readonly readAt: Instant; readonly row: Promise<HashedApiKey | null> };

export function createKeyring({ sql, clock }: { readonly sql: Sql; readonly clock: Clock }): Keyring {
  const kept = new Map<string, Kept>();
  const rowOf = (prefix: string): Promise<HashedApiKey | null> => {
    const now = clock.now();
    const known = kept.get(prefix);
    if (known && now >= known.readAt && now - known.readAt < FRESH_MS) return known.row;
    const row = findApiKey(sql, prefix);
    kept.delete(prefix);
    const entry: Kept = { readAt: now, row };
    kept.set(prefix, entry);
    row.catch(() => {
      if (kept.get(prefix) === entry) kept.delete(prefix);
    });
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
    return row;
  };
  return {
    isNew(key) {
      const prefix = prefixOf(key);
      return prefix !== null && !kept.has(prefix);
    },
    async find(key) {
      const prefix = prefixOf(key);
      const row = prefix === null ? null : await rowOf(prefix);
      // In the same time, however much of it is right.
      if (row === null || !timingSafeEqual(hashApiKey(key), row.hash)) return null;
      const now = clock.now();
      if (row.revokedAt !== null || (row.expiresAt !== null && row.expiresAt <= now)) return null;
      return row;
    },
  };
}
