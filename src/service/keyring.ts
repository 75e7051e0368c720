/** Finds the key that a caller has sent; looks into the database for each at most every other second, so a revoked one is refused soon. */
import { timingSafeEqual } from 'node:crypto';
import type { Clock, Instant } from '../clock.ts';
import { hashApiKey, prefixOf } from '../core/api-key.ts';
import { type ApiKey, findApiKey, type HashedApiKey } from '../store/api-key.ts';
import type { Sql } from '../store/connect.ts';

export type Keyring = {
  /** Null: not one of ours, revoked, or expired. */
  find(key: string): Promise<ApiKey | null>;
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
    kept.set(prefix, { readAt: now, row });
    row.catch(() => kept.delete(prefix));
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
    return row;
  };
  return {
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
