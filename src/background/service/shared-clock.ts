/**
 * The time that all services of a warehouse agree on: the database's. Otherwise a host with a wrong clock would write wrong times into
 * what the services share (claims, leases, when a series was fetched).
 */
import type { Clock } from '../../clock.ts';
import { createClockOffset } from '../../quota/clock-offset.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { readDatabaseClock } from '../../store/quota/quota.ts';

export type SharedClock = Clock & {
  /** Reads the database's time; until the first time, the clock is the host's own. */
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
