/**
 * Has this upstream ever answered? Until it has, a connection that nobody accepts means a wrong address or no network, and waiting does
 * not help; afterwards it means an outage, which ends.
 */
import type { Sql } from '../../store/connection/connect.ts';
import { hasAnswered } from '../../store/work/fetch.ts';
import type { Exchange, NoContact } from '../../upstream/answer.ts';

export type Reachability = {
  /** True when nobody answered this request, and nobody has ever answered at this address. */
  isMissing(exchange: Exchange): Promise<boolean>;
};

/** Somebody answers, but not in the protocol of the address; an answer in another protocol yesterday does not change that. */
const OTHER_PROTOCOL: readonly (NoContact | null)[] = ['no TLS', 'not HTTP'];

/** Of the upstream at `host` (with its port), for whichever account. */
export function createReachability(sql: Sql, host: string): Reachability {
  let isProven = false;
  return {
    isMissing: async ({ status, noContact }) => {
      if (status !== null) isProven = true;
      if (isProven || noContact === null) return false;
      if (OTHER_PROTOCOL.includes(noContact)) return true;
      isProven = await hasAnswered(sql, host);
      return !isProven;
    },
  };
}
