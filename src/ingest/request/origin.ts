/** Keeps simulated and real data out of the same warehouse: nobody could tell them apart afterwards. */
import type { Sql } from '../../store/connection/connect.ts';
import { claimOrigin } from '../../store/work/installation.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { ConfigurationError } from '../outcome.ts';
import { otherOrigin } from './configuration-errors.ts';

/** Called before an answer is stored; the first answer decides which market the warehouse holds. @throws ConfigurationError */
export type OriginCheck = (exchange: Exchange) => Promise<void>;

export function createOriginCheck(sql: Sql): OriginCheck {
  /** It never changes once it is decided; undefined: not read yet. */
  let held: string | null | undefined;
  return async ({ simulator }) => {
    if (held === undefined) held = await claimOrigin(sql, simulator);
    if (held !== simulator) throw new ConfigurationError(otherOrigin(held, simulator));
  };
}
