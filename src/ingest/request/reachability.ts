/**
 * Has this upstream ever answered? Until it has, a connection that fails means a wrong address or no network, and waiting does not help. Afterwards
 * it means an outage, which ends.
 */
import type { Sql } from '../../store/connection/connect.ts';
import { hasAnswered } from '../../store/work/fetch.ts';
import type { Exchange, NoContact } from '../../upstream/answer.ts';

export type Reachability = {
  /** True when no upstream answers at this address, and none ever has. Also true when the server there uses another protocol. */
  isMissing(exchange: Exchange): Promise<boolean>;
};

/** A server answers, but not in the protocol of the address. An answer in another protocol yesterday does not change that. */
const OTHER_PROTOCOL: readonly (NoContact | null)[] = ['no TLS', 'not HTTP'];

/** For the upstream at `host` (with its port), for all accounts. */
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
