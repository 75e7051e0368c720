/** Estimates the difference between our clock and the database's from requests for its time. */
import type { Clock, Instant } from '../clock.ts';
import type { Sql } from '../store/connection/connect.ts';
import { readDatabaseClock } from '../store/quota/quota.ts';

type ClockOffset = {
  /**
   * The database's clock showed `there` at some moment between `sentAt` and `answeredAt` of our clock. Returns the milliseconds to add to
   * its instants to get ours: the last estimate, corrected only as far as this observation proves it wrong. So the estimate does not
   * change with the load (instants in a sequence keep their order), and one observation is enough to follow a clock that was set. If our
   * clock was set back during the observation, only `answeredAt` counts.
   */
  observe(sentAt: Instant, answeredAt: Instant, there: Instant): number;
};

export function createClockOffset(): ClockOffset {
  let estimate = Number.POSITIVE_INFINITY;
  return {
    observe(sentAt, answeredAt, there) {
      const wasSetBack = answeredAt < sentAt;
      estimate = wasSetBack ? answeredAt - there : Math.max(sentAt - there, Math.min(estimate, answeredAt - there));
      return estimate;
    },
  };
}

/** The clock of a ledger: the database's, which all hosts share, or our own. */
export type LedgerClock = {
  /** The current instant for the ledger's statements; null when they read the database's clock. */
  now(): Instant | null;
  /** Resolves when the offset is exact enough for a grant's instant. Rejects when the database does not answer. */
  ready(): Promise<void>;
  /** Milliseconds to add to the ledger's instants to get ours. `there` is its time in the result of a statement sent at `sentAt`. */
  shiftMs(sentAt: Instant, there: Instant): number;
};

/** Time requests before the first grant. If the instant of the first grant were too late, it would be too close to the next ones. */
const OBSERVATIONS = 5;

export function createLedgerClock(sql: Sql, clock: Clock, useDatabaseClock: boolean): LedgerClock {
  if (!useDatabaseClock) return { now: () => clock.now(), ready: () => Promise.resolve(), shiftMs: () => 0 };
  const offset = createClockOffset();
  const shiftMs = (sentAt: Instant, there: Instant) => offset.observe(sentAt, clock.now(), there);
  const observe = async () => {
    for (let i = 0; i < OBSERVATIONS; i++) {
      const sentAt = clock.now();
      shiftMs(sentAt, await readDatabaseClock(sql));
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
