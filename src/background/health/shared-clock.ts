/** A clock that follows the clock of the database, so that all processes of a warehouse agree on the time. */
import type { Clock } from '../../clock.ts';
import { createClockOffset } from '../../quota/clock-offset.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { readDatabaseClock } from '../../store/quota/quota.ts';

/** The database's time. A host with a wrong clock would otherwise write wrong times into shared rows. */
type SharedClock = Clock & {
  /** Reads the database's time. Until the first reading, the clock is the host's own. */
  follow(sql: SqlOrTransaction): Promise<void>;
};

export function createSharedClock(own: Clock): SharedClock {
  const offset = createClockOffset();
  let aheadMs = 0;
  return {
    now: () => Math.floor(own.now() - aheadMs),
    sleep: own.sleep,
    follow: async (sql) => {
      const sentAt = own.now();
      const there = await readDatabaseClock(sql);
      aheadMs = offset.observe(sentAt, own.now(), there);
    },
  };
}
