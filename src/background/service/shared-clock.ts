/**
 * The time that all services of a warehouse agree on: the database's. What they write down for each other (claims, leases, when a
 * series was asked) would otherwise be of different times when the clock of a host is wrong, or is set while it runs.
 */
import type { Clock } from '../../clock.ts';
import { createClockOffset } from '../../quota/clock-offset.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { readDatabaseClock } from '../../store/quota/quota.ts';

export type SharedClock = Clock & {
  /** Looks what time the database has; until the first time it is our own. */
  follow(sql: SqlOrTransaction): Promise<void>;
};

export function createSharedClock(own: Clock): SharedClock {
  const offset = createClockOffset();
  let aheadMs = 0;
  return {
    now: () => Math.floor(own.now() - aheadMs),
    sleep: own.sleep,
    follow: async (sql) => {
      const askedAt = own.now();
      const there = await readDatabaseClock(sql);
      aheadMs = offset.observe(askedAt, own.now(), there);
    },
  };
}
