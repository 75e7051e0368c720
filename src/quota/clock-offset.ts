/** How far our clock is from the database's, as well as can be known from asking it the time. */
import type { Clock, Instant } from '../clock.ts';
import type { Sql } from '../store/connection/connect.ts';
import { readDatabaseClock } from '../store/quota/quota.ts';

type ClockOffset = {
  /**
   * The database read `there` at some moment between `askedAt` and `answeredAt` of our clock. Returns what to add to its
   * instants to get ours: the last estimate, corrected no further than this observation proves it wrong. So it does not
   * change with the load (instants in a sequence keep their order), and follows a clock that is set within one observation. Of a clock
   * that was set back during the observation, only what it read afterwards counts.
   */
  observe(askedAt: Instant, answeredAt: Instant, there: Instant): number;
};

export function createClockOffset(): ClockOffset {
  let estimate = Number.POSITIVE_INFINITY;
  return {
    observe(askedAt, answeredAt, there) {
      const wasSetBack = answeredAt < askedAt;
      estimate = wasSetBack ? answeredAt - there : Math.max(askedAt - there, Math.min(estimate, answeredAt - there));
      return estimate;
    },
  };
}

/** The clock that a ledger goes by: the database's, which all hosts share, or our own. */
export type LedgerClock = {
  /** For the ledger's statements; null: they read the database's clock. */
  now(): Instant | null;
  /** Resolves when the offset is known well enough to tell a grant's instant. Rejects when the database cannot be asked. */
  ready(): Promise<void>;
  /** What to add to the ledger's instants to get ours. `there`: its time in an answer that was asked for at `askedAt` of our clock. */
  shiftMs(askedAt: Instant, there: Instant): number;
};

/** So often the time is asked before the first grant: a first grant told too late would come too close to the next ones. */
const OBSERVATIONS = 5;

export function createLedgerClock(sql: Sql, clock: Clock, useDatabaseClock: boolean): LedgerClock {
  if (!useDatabaseClock) return { now: () => clock.now(), ready: () => Promise.resolve(), shiftMs: () => 0 };
  const offset = createClockOffset();
  const shiftMs = (askedAt: Instant, there: Instant) => offset.observe(askedAt, clock.now(), there);
  const observe = async () => {
    for (let i = 0; i < OBSERVATIONS; i++) {
      const askedAt = clock.now();
      shiftMs(askedAt, await readDatabaseClock(sql));
    }
  };
  let observed: Promise<void> | null = null;
  return {
    now: () => null,
    ready: () => {
      observed ??= observe().catch((error) => {
        observed = null;
        throw error;
      });
      return observed;
    },
    shiftMs,
  };
}
