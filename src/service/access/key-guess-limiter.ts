/** Limits how fast one address can guess keys: an unknown key costs a look-up in the database, and counts when it was wrong. */
import type { TokenBuckets } from './token-bucket.ts';

export type KeyGuessLimiter = {
  /**
   * What `find` resolves to, or how long the address must wait. Only a key that is not found counts, so many good keys behind one
   * address are never refused. While as many keys as may be wrong are being looked up, further calls wait for them.
   */
  lookUp<T>(address: string, find: () => Promise<T | null>): Promise<{ readonly found: T | null } | TooEarly>;
  /** Counts a key that was found to be wrong without a look-up. Null: the caller may be told so. */
  countWrong(address: string): TooEarly | null;
};

export type TooEarly = { readonly lateMs: number };

export function createKeyGuessLimiter({
  buckets,
  perSecond,
}: {
  readonly buckets: TokenBuckets;
  readonly perSecond: number | null;
}): KeyGuessLimiter {
  const lookUpsOf = new Map<string, Set<Promise<void>>>();
  const countWrong = (address: string): TooEarly | null => {
    const lateMs = buckets.take(`guess:${address}`, perSecond);
    return lateMs === null ? null : { lateMs };
  };
  /** Its token is put back unless the key was wrong. */
  const find = <T>(address: string, look: () => Promise<T | null>): Promise<T | null> => {
    const lookUps = lookUpsOf.get(address) ?? new Set();
    lookUpsOf.set(address, lookUps);
    const looking = look();
    const isWrong = looking.then(
      (found) => found === null,
      () => false,
    );
    const over = isWrong.then((wrong) => {
      lookUps.delete(over);
      if (lookUps.size === 0) lookUpsOf.delete(address);
      if (!wrong) buckets.putBack(`guess:${address}`, perSecond);
    });
    lookUps.add(over);
    return looking;
  };
  return {
    countWrong,
    async lookUp(address, look) {
      for (;;) {
        const early = countWrong(address);
        if (early === null) return { found: await find(address, look) };
        const lookUps = lookUpsOf.get(address);
        if (lookUps === undefined) return early;
        await Promise.race(lookUps);
      }
    },
  };
}
