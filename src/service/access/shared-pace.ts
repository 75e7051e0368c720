/**
 * The pace of a caller across all processes on one database, without one database write per request. A process takes a few tokens from
 * its own picture of the caller's bucket. Then it takes them from the bucket in the database too, and learns what the others have taken.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../clock.ts';
import { createBatcher } from '../../core/concurrency/batcher.ts';
import { type TokensTaken, takeTokens } from '../../store/callers/api-pace.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createTokenBuckets, MOST_AHEAD_MS } from './token-bucket.ts';

export type SharedPace = {
  /** Takes one token of `subject`. Null: taken, or there is no limit; else the milliseconds until there is one. */
  take(subject: string, perSecond: number | null): number | null | Promise<number | null>;
  /** Waits for the statements under way. */
  close(): Promise<void>;
};

/**
 * A process takes this share of a bucket before it tells the database. So five processes together exceed the pace of a caller by one
 * bucket at most, for the moment: what they took is missing in the bucket afterwards.
 */
const SHARE = 1 / 5;
const MAX_CALLERS = 100_000;

/** What this process took of one bucket and has not told the database. */
type Untold = { tokens: number; telling: Promise<void> | null };

export function createSharedPace({
  sql,
  clock,
  onError,
}: {
  /** May write `ops.api_pace`. */
  readonly sql: Sql;
  readonly clock: Clock;
  /** Called when the database could not be told. Until the next time, this process counts by itself. */
  readonly onError: (error: Error) => void;
}): SharedPace {
  const buckets = createTokenBuckets(clock);
  const callers = new LRUCache<string, Untold>({ max: MAX_CALLERS });
  const underWay = new Set<Promise<void>>();
  const takeFromDatabase = createBatcher(async (taken: readonly TokensTaken[]) => {
    const told = await takeTokens(sql, taken, { now: clock.now(), mostAheadMs: MOST_AHEAD_MS });
    const bySubject = new Map(told.map(({ subject, fullAt }) => [subject, fullAt]));
    return taken.map(({ subject }) => bySubject.get(subject)!);
  });

  const tell = async (subject: string, perSecond: number, untold: Untold): Promise<void> => {
    try {
      buckets.delay(subject, await takeFromDatabase({ subject, refillMs: (untold.tokens * 1000) / perSecond }));
    } catch (error) {
      onError(error as Error);
    }
    Object.assign(untold, { tokens: 0, telling: null });
  };
  const takeHere = (subject: string, perSecond: number, untold: Untold): number | null => {
    const lateMs = buckets.take(subject, perSecond);
    if (lateMs !== null) return lateMs;
    untold.tokens++;
    if (untold.tokens < Math.max(1, Math.floor(perSecond * SHARE))) return null;
    const telling = tell(subject, perSecond, untold).finally(() => underWay.delete(telling));
    underWay.add(telling);
    untold.telling = telling;
    return null;
  };
  const takeAfterTelling = async (subject: string, perSecond: number, untold: Untold): Promise<number | null> => {
    while (untold.telling !== null) await untold.telling;
    return takeHere(subject, perSecond, untold);
  };
  return {
    take(subject, perSecond) {
      if (perSecond === null) return null;
      const untold = callers.get(subject) ?? { tokens: 0, telling: null };
      callers.set(subject, untold);
      return untold.telling === null
        ? takeHere(subject, perSecond, untold)
        : takeAfterTelling(subject, perSecond, untold);
    },
    async close() {
      await Promise.all(underWay);
    },
  };
}
