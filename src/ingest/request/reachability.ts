/**
 * Has this upstream ever answered us? Until it has, a connection that nobody takes means a wrong address or no network, and
 * waiting is of no use; afterwards it means an outage, which ends.
 */
import type { Sql } from '../../store/connection/connect.ts';
import { hasAnswered } from '../../store/work/fetch.ts';
import type { Exchange, NoContact } from '../../upstream/answer.ts';

export type Contact = {
  /** Looks at what came of a request; true when nobody was there, and nobody ever was. */
  isMissing(exchange: Exchange): Promise<boolean>;
};

/** What somebody is who answers, and not in the protocol of the address: that he answered in another one yesterday changes nothing. */
const OTHER_PROTOCOL: readonly (NoContact | null)[] = ['no TLS', 'not HTTP'];

/** Of the upstream at `host` (with its port), whoever asked it. */
export function createContact(sql: Sql, host: string): Contact {
  let made = false;
  return {
    isMissing: async ({ status, noContact }) => {
      if (status !== null) made = true;
      if (made || noContact === null) return false;
      if (OTHER_PROTOCOL.includes(noContact)) return true;
      made = await hasAnswered(sql, host);
      return !made;
    },
  };
}
