/** Keys that nobody has asked with lately are looked up in the database, and could be guesses: from one address no more than so many a second. */
import type { Pace } from './token-bucket.ts';

export type Guesses = {
  /**
   * What `find` resolves to, or how many milliseconds too early it is. Only what is not found counts as a guess: many good keys behind
   * one address are no reason to refuse any. While as many as may be wrong are being looked up, the others wait for those.
   */
  lookUp<T>(from: string, find: () => Promise<T | null>): Promise<{ readonly found: T | null } | TooEarly>;
  /** Something was found to be wrong without a look-up. Null: it is counted, and may be said. */
  wrong(from: string): TooEarly | null;
};

export type TooEarly = { readonly lateMs: number };

export function createGuesses({ pace, perSecond }: { pace: Pace; perSecond: number | null }): Guesses {
  const underWay = new Map<string, Set<Promise<void>>>();
  const wrong = (from: string): TooEarly | null => {
    const lateMs = pace.tooEarly(from, perSecond);
    return lateMs === null ? null : { lateMs };
  };
  /** Counts until it is known to be good. */
  const look = async <T>(from: string, find: () => Promise<T | null>): Promise<T | null> => {
    const others = underWay.get(from) ?? new Set();
    if (others.size === 0) underWay.set(from, others);
    let isWrong = false;
    const looking = find().then((found) => {
      isWrong = found === null;
      return found;
    });
    const over = looking
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        others.delete(over);
        if (others.size === 0) underWay.delete(from);
        if (!isWrong) pace.giveBack(from, perSecond);
      });
    others.add(over);
    return looking;
  };
  return {
    wrong,
    async lookUp(from, find) {
      for (;;) {
        const early = wrong(from);
        if (early === null) return { found: await look(from, find) };
        const others = underWay.get(from);
        if (others === undefined) return early;
        await Promise.race(others);
      }
    },
  };
}
