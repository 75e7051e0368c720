/**
 * The rate limit of a caller across all processes on one database, without one database write per request. A process first takes a few tokens from
 * its own copy of the caller's bucket. Then it takes the same tokens from the bucket in the database, and learns what the others have taken.
 */
import { LRUCache } from 'lru-cache';
import type { Clock, Instant } from '../../clock.ts';
import { createBatcher } from '../../core/concurrency/batcher.ts';
import { type TokensTaken, takeTokens } from '../../store/callers/api-pace.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createTokenBuckets, MOST_AHEAD_MS } from './token-bucket.ts';

type SharedPace = {
  /** Takes one token of `subject`. Null: taken, or there is no limit; otherwise the milliseconds until there is one. */
  take(subject: string, perSecond: number | null): number | null | Promise<number | null>;
  /** Waits for the running statements. */
  close(): Promise<void>;
};

/**
 * A process takes this share of a bucket before it reports to the database. So five processes together exceed the rate of a caller by one bucket at
 * most, and only briefly: the tokens that they took are then missing in the bucket.
 */
const SHARE = 1 / 5;
const MAX_CALLERS = 100_000;
/**
 * Another transaction may hold the row of a bucket. Then no process knows what the others take, so each gives at most its share. After that it
 * refuses the caller, who waits for no lock. It reports to the database again after this many milliseconds; until then its tokens stay unreported.
 */
const HELD_MS = 1_000;

/** The tokens that this process took from one bucket and has not reported to the database. It does not try to report before `heldUntil`. */
type UnreportedTokens = { tokens: number; report: Promise<void> | null; heldUntil: Instant };

export function createSharedPace({
  sql,
  clock,
  onError,
}: {
  /** Its role may write `ops.api_pace`. */
  readonly sql: Sql;
  readonly clock: Clock;
  /**
   * Called when a report to the database failed. While the database is unavailable, this process counts alone. While only the row of a caller is
   * held, it refuses the caller.
   */
  readonly onError: (error: Error) => void;
}): SharedPace {
  const buckets = createTokenBuckets(clock);
  // With `max`, the cache would take 2 MB before the first call.
  const callers = new LRUCache<string, UnreportedTokens>({ maxSize: MAX_CALLERS, sizeCalculation: () => 1 });
  const underWay = new Set<Promise<void>>();
  const takeFromDatabase = createBatcher(async (taken: readonly TokensTaken[]) => {
    const rows = await takeTokens(sql, taken, { now: clock.now(), mostAheadMs: MOST_AHEAD_MS });
    const bySubject = new Map(rows.map(({ subject, fullAt }) => [subject, fullAt]));
    return taken.map(({ subject }) => bySubject.get(subject) ?? null);
  });

  const sendReport = async (subject: string, perSecond: number, unreported: UnreportedTokens): Promise<void> => {
    try {
      const fullAt = await takeFromDatabase({ subject, refillMs: (unreported.tokens * 1000) / perSecond });
      if (fullAt === null) {
        unreported.heldUntil = clock.now() + HELD_MS;
        onError(
          new Error(
            'another session locks the row of a caller in ops.api_pace; the caller is refused until that session releases it',
          ),
        );
        return;
      }
      buckets.delay(subject, fullAt);
    } catch (error) {
      onError(error as Error);
    } finally {
      unreported.report = null;
    }
    unreported.tokens = 0;
  };
  const beginReport = (subject: string, perSecond: number, unreported: UnreportedTokens): void => {
    const report = sendReport(subject, perSecond, unreported).finally(() => underWay.delete(report));
    underWay.add(report);
    unreported.report = report;
  };
  const hasTakenShare = (perSecond: number, { tokens }: UnreportedTokens) =>
    tokens >= Math.max(1, Math.floor(perSecond * SHARE));
  const heldMs = ({ heldUntil }: UnreportedTokens) => {
    const ms = heldUntil - clock.now();
    // A longer wait was computed before the clock was set back.
    return ms > 0 && ms <= HELD_MS ? ms : null;
  };
  const takeHere = (subject: string, perSecond: number, unreported: UnreportedTokens): number | null => {
    const lateMs = buckets.take(subject, perSecond);
    if (lateMs !== null) return lateMs;
    unreported.tokens++;
    if (hasTakenShare(perSecond, unreported)) beginReport(subject, perSecond, unreported);
    return null;
  };
  const takeAfterReport = async (
    subject: string,
    perSecond: number,
    unreported: UnreportedTokens,
  ): Promise<number | null> => {
    while (unreported.report !== null) await unreported.report;
    return hasTakenShare(perSecond, unreported) ? HELD_MS : takeHere(subject, perSecond, unreported);
  };
  return {
    take(subject, perSecond) {
      if (perSecond === null) return null;
      const unreported = callers.get(subject) ?? { tokens: 0, report: null, heldUntil: 0 };
      callers.set(subject, unreported);
      if (unreported.report === null && hasTakenShare(perSecond, unreported)) {
        const waitMs = heldMs(unreported);
        if (waitMs !== null) return waitMs;
        beginReport(subject, perSecond, unreported);
      }
      return unreported.report === null
        ? takeHere(subject, perSecond, unreported)
        : takeAfterReport(subject, perSecond, unreported);
    },
    async close() {
      await Promise.all(underWay);
    },
  };
}
